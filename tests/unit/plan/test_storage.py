"""Volumes of an engine's pod."""

import pytest

from epd_operator.api.role import Role
from epd_operator.engine.site import Site
from epd_operator.plan.storage import mounts_of, shared_directories
from tests.unit.objects import wiring

CLAIM = {"persistentVolumeClaim": {"claimName": "a"}}
FILES = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}"


def mounts(spec: str, role: Role) -> dict[str, tuple[str, object, bool]]:
    wired = wiring(spec)
    return {
        mount.name: (mount.path, mount.source, mount.read_only) for mount in mounts_of(wired, wired.instances[role])
    }


def test_every_pod_has_shared_memory_and_writable_directories() -> None:
    found = mounts("", Role.DECODE)
    assert found["shm"] == ("/dev/shm", {"emptyDir": {"medium": "Memory", "sizeLimit": "4160Mi"}}, False)
    assert found["tmp"] == ("/tmp", {"emptyDir": {}}, False)
    assert found["cache"][1] == {"emptyDir": {}}
    assert set(found) == {"shm", "tmp", "cache"}


@pytest.mark.parametrize(("model_id", "read_only"), [("./a", True), ("/a", True), ("a/b", False)])
def test_weights_are_read_only_and_a_download_cache_is_not(model_id: str, read_only: bool) -> None:
    found = mounts(f"model: {{id: {model_id}, volume: {{persistentVolumeClaim: {{claimName: a}}}}}}", Role.DECODE)
    assert found["models"] == ("/models", CLAIM, read_only)


def test_consumers_write_to_the_embeddings_directory_too() -> None:
    for role in (Role.ENCODE, Role.DECODE):
        assert mounts(FILES, role)["embeddings"] == ("/var/lib/epd/embeddings", CLAIM, False)


def test_decode_behind_prefill_has_no_embeddings() -> None:
    assert "embeddings" not in mounts(f"{{prefill: {{}}, {FILES}}}", Role.DECODE)
    assert "embeddings" in mounts(f"{{prefill: {{}}, {FILES}}}", Role.PREFILL)


def test_a_connector_without_files_mounts_nothing() -> None:
    spec = "transfer: {embeddings: {connector: ECCPUConnector, volume: {persistentVolumeClaim: {claimName: a}}}}"
    assert "embeddings" not in mounts(spec, Role.ENCODE)


@pytest.mark.parametrize(
    ("transfer", "claim"),
    [
        ("kv: {connector: ExampleConnector, volume: {persistentVolumeClaim: {claimName: b}}}", "b"),
        ("kv: {connector: ExampleConnector}", "a"),
    ],
)
def test_kv_blocks_share_the_claim_of_the_embeddings_unless_they_have_one(transfer: str, claim: str) -> None:
    embeddings = "embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}"
    found = mounts(f"{{prefill: {{}}, transfer: {{{embeddings}, {transfer}}}}}", Role.DECODE)
    assert found["kv"] == ("/var/lib/epd/kv", {"persistentVolumeClaim": {"claimName": claim}}, False)


def test_shared_directories_are_those_of_the_site() -> None:
    wired = wiring(FILES)
    site = Site(embeddings_directory="/x", kv_directory="/y")
    assert shared_directories(wired, wired.instances[Role.ENCODE], site) == ("/x",)
    assert shared_directories(wiring(""), wiring("").instances[Role.ENCODE], site) == ()
