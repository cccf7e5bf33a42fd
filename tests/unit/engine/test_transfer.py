"""The transfer configurations of each role, for each connector."""

from typing import Any

import pytest

from epd_operator.api.role import Role
from epd_operator.engine.site import POD, Ports, Site
from epd_operator.engine.transfer import embeddings_config, kv_config
from tests.unit.objects import wiring

CLAIM = "volume: {persistentVolumeClaim: {claimName: a}}"


def configs(spec: str, role: Role, site: Site = POD) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    wired = wiring(spec)
    instance = wired.instances[role]
    return embeddings_config(wired, instance, site), kv_config(wired, instance, site)


@pytest.mark.parametrize(("role", "ec_role"), [(Role.ENCODE, "ec_producer"), (Role.DECODE, "ec_consumer")])
def test_files(role: Role, ec_role: str) -> None:
    assert configs(f"transfer: {{embeddings: {{{CLAIM}}}}}", role) == (
        {
            "ec_connector": "ECExampleConnector",
            "ec_role": ec_role,
            "ec_connector_extra_config": {"shared_storage_path": POD.embeddings_directory},
        },
        None,
    )


@pytest.mark.parametrize("role", [Role.ENCODE, Role.DECODE])
@pytest.mark.parametrize(
    ("embeddings", "size"),
    [
        ("{}", 4 << 30),
        ("{cacheSize: 8Gi}", 8 << 30),
        ("{extraConfig: {ec_cpu_bytes: 4096}}", 4096),
        ("{cacheSize: 4Ki, extraConfig: {ec_cpu_bytes: 4096}}", 4096),
    ],
)
def test_host_memory_is_the_same_on_both_sides_and_moves_over_nixl(role: Role, embeddings: str, size: int) -> None:
    config, _ = configs(f"transfer: {{embeddings: {embeddings}}}", role)
    assert config is not None
    assert config["ec_connector_extra_config"] == {"ec_cpu_bytes": size, "ec_enable_nixl": True}


def test_mooncake_pushes_to_the_consumers_own_address() -> None:
    spec = "transfer: {embeddings: {connector: ECMooncakeConnector, extraConfig: {mooncake_protocol: tcp}}}"
    producer, _ = configs(spec, Role.ENCODE)
    consumer, _ = configs(spec, Role.DECODE, Site(address="10.0.0.1", ports=Ports(embeddings_push=7)))
    assert producer == {
        "ec_connector": "ECMooncakeConnector",
        "ec_role": "ec_producer",
        "ec_connector_extra_config": {"mooncake_protocol": "tcp"},
    }
    assert consumer is not None
    assert (consumer["ec_ip"], consumer["ec_port"]) == ("10.0.0.1", 7)


def test_all_three_roles() -> None:
    assert [
        tuple(config and config.get("ec_role", config.get("kv_role")) for config in configs("prefill: {}", role))
        for role in Role
    ] == [("ec_producer", None), ("ec_consumer", "kv_producer"), (None, "kv_consumer")]


@pytest.mark.parametrize(
    ("kv", "extra"),
    [
        ("{}", None),
        ("{extraConfig: {kv_lease_duration: 60}}", {"kv_lease_duration": 60}),
        (f"{{connector: ExampleConnector, {CLAIM}}}", {"shared_storage_path": POD.kv_directory}),
        ("{connector: MultiConnector, extraConfig: {connectors: []}}", {"connectors": []}),
    ],
)
def test_extra_config_of_kv(kv: str, extra: dict[str, Any] | None) -> None:
    for role in (Role.PREFILL, Role.DECODE):
        _, config = configs(f"{{prefill: {{}}, transfer: {{kv: {kv}}}}}", role)
        assert config is not None
        assert config.get("kv_connector_extra_config") == extra


@pytest.mark.parametrize("role", list(Role))
def test_fields_that_later_releases_refuse_are_never_written(role: Role) -> None:
    for config in configs("prefill: {}", role):
        assert not {"ec_rank", "kv_rank", "kv_parallel_size", "kv_ip"} & set(config or {})


def test_decode_behind_prefill_takes_no_part_in_the_transfer_of_embeddings() -> None:
    assert configs("prefill: {}", Role.DECODE)[0] is None
    assert configs("", Role.DECODE)[1] is None
