"""An object as vLLM sees it: roles, devices, releases, default connectors."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from epd_operator.api.device import DeviceType
from epd_operator.api.parse import parse
from epd_operator.api.role import Role
from epd_operator.engine.wiring import Defaults, device_of, release_of, transfer_roles, wire
from tests.unit.objects import deployment, wiring
from tests.unit.strategies import valid_documents

CLAIM = "volume: {persistentVolumeClaim: {claimName: a}}"


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(valid_documents())
def test_anything_can_be_wired(document: dict[str, Any]) -> None:
    parsed = parse(document)
    assert parsed.deployment is not None
    wired = wire(parsed.deployment)
    assert set(wired.instances) == set(parsed.deployment.spec.roles())
    assert (wired.embeddings is not None) == (Role.ENCODE in wired.instances)
    assert (wired.kv is not None) == (Role.PREFILL in wired.instances)
    for instance in wired.instances.values():
        assert len(instance.words) == len(instance.arg_paths)
        assert instance.preprocessing_device


@pytest.mark.parametrize(
    ("role", "encode", "prefill", "expected"),
    [
        (Role.ENCODE, True, False, ("ec_producer", None)),
        (Role.ENCODE, True, True, ("ec_producer", None)),
        (Role.PREFILL, True, True, ("ec_consumer", "kv_producer")),
        (Role.PREFILL, False, True, (None, "kv_producer")),
        (Role.DECODE, True, True, (None, "kv_consumer")),
        (Role.DECODE, True, False, ("ec_consumer", None)),
        (Role.DECODE, False, True, (None, "kv_consumer")),
        (Role.DECODE, False, False, (None, None)),
    ],
)
def test_roles_in_the_transfers(
    role: Role, encode: bool, prefill: bool, expected: tuple[str | None, str | None]
) -> None:
    assert transfer_roles(role, encode=encode, prefill=prefill) == expected


@pytest.mark.parametrize(
    ("spec", "connector"),
    [
        ("", "ECCPUConnector"),
        ("engine: {version: 0.30.0}", "ECCPUConnector"),
        ("engine: {version: 0.29.9}", "ECExampleConnector"),
        (f"transfer: {{embeddings: {{{CLAIM}}}}}", "ECExampleConnector"),
        ("device: {type: CPU}", "ECExampleConnector"),
        ("encode: {device: {type: CPU}}", "ECExampleConnector"),
        ("decode: {device: {type: CPU}}", "ECExampleConnector"),
        ("{prefill: {}, decode: {device: {type: CPU}}}", "ECCPUConnector"),
        ("{prefill: {device: {type: CPU}}}", "ECExampleConnector"),
        ("device: {type: ROCm}", "ECCPUConnector"),
        ("transfer: {embeddings: {connector: ECMooncakeConnector}}", "ECMooncakeConnector"),
    ],
)
def test_default_embeddings_connector(spec: str, connector: str) -> None:
    choice = wiring(spec).embeddings
    assert choice is not None
    assert choice.connector == connector
    assert choice.chosen is ("connector" not in spec)


def test_local_processes_share_files() -> None:
    choice = wiring("", local=True).embeddings
    assert choice is not None
    assert choice.connector == "ECExampleConnector"


def test_what_was_chosen_once_stays() -> None:
    kept = Defaults("ECMooncakeConnector", "MooncakeConnector")
    wired = wire(deployment("prefill: {}"), defaults=kept)
    assert wired.embeddings is not None
    assert wired.kv is not None
    assert (wired.embeddings.connector, wired.kv.connector) == ("ECMooncakeConnector", "MooncakeConnector")


@pytest.mark.parametrize(
    ("spec", "role", "expected"),
    [
        ("", Role.DECODE, (DeviceType.CUDA, None)),
        ("device: {type: ROCm, product: A}", Role.DECODE, (DeviceType.ROCM, "A")),
        ("{device: {product: A}, decode: {device: {product: B}}}", Role.DECODE, (DeviceType.CUDA, "B")),
        ("{device: {product: A}, decode: {device: {type: CUDA}}}", Role.DECODE, (DeviceType.CUDA, "A")),
        ("{device: {product: A}, decode: {device: {type: ROCm}}}", Role.DECODE, (DeviceType.ROCM, None)),
        ("{device: {type: ROCm, product: A}, decode: {device: {}}}", Role.DECODE, (DeviceType.ROCM, "A")),
    ],
)
def test_devices(spec: str, role: Role, expected: tuple[DeviceType, str | None]) -> None:
    device = device_of(deployment(spec), role)
    assert (device.type, device.product) == expected


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ("", "spec.device.type"),
        ("device: {type: ROCm}", "spec.device.type"),
        ("decode: {device: {type: ROCm}}", "spec.decode.device.type"),
        ("decode: {device: {product: A}}", "spec.device.type"),
    ],
)
def test_where_a_device_type_was_written(spec: str, path: str) -> None:
    assert wiring(spec).instances[Role.DECODE].device_path == path


@pytest.mark.parametrize(
    ("engine", "release"),
    [
        ("{version: 0.32.1}", "0.32.1"),
        ("{version: 0.32.1, image: 'a:0.33.0'}", "0.32.1"),
        ("{version: <absent>, image: 'a:v0.33.0'}", "0.33.0"),
        ("{version: latest, image: 'a:v0.33.0'}", None),
        ("{version: <absent>}", None),
    ],
)
def test_release(engine: str, release: str | None) -> None:
    found = release_of(deployment(f"engine: {engine}"))
    assert (str(found) if found else None) == release


def test_args_of_all_come_before_those_of_the_role() -> None:
    spec = "{engine: {args: [--max-num-seqs=1, --dtype, auto]}, decode: {args: [--max-num-seqs=2]}}"
    decode = wiring(spec).instances[Role.DECODE]
    assert decode.user_value("--max-num-seqs") == 2
    assert decode.arg_paths == (
        "spec.engine.args[0]",
        "spec.engine.args[1]",
        "spec.engine.args[2]",
        "spec.decode.args[0]",
    )


def test_env_of_the_role_wins() -> None:
    spec = "{engine: {env: [{name: A, value: x}]}, decode: {env: [{name: B}, {name: A, value: y}]}}"
    env = wiring(spec).instances[Role.DECODE].env
    assert env["A"].path == "spec.decode.env[1]"
    assert env["A"].variable.value == "y"


@pytest.mark.parametrize(
    ("spec", "device"),
    [
        ("", "cuda"),
        ("device: {type: ROCm}", "cuda"),
        ("encode: {device: {type: XPU}}", "xpu"),
        ("device: {type: CPU}", "cpu"),
        ("encode: {preprocessing: {device: CPU}}", "cpu"),
        ("encode: {preprocessing: {tensorIPC: direct_rpc}}", "cpu"),
        ("encode: {preprocessing: {tensorIPC: direct_rpc, device: Accelerator}}", "cuda"),
        ("encode: {parallelism: {tensor: 2}}", "cpu"),
        ("""encode: {args: ['--mm-processor-kwargs={"device": "CPU"}']}""", "cpu"),
        ("""encode: {args: ['--mm-processor-kwargs={"device": 3}']}""", "cuda"),
    ],
)
def test_where_media_become_tensors(spec: str, device: str) -> None:
    assert wiring(spec).instances[Role.ENCODE].preprocessing_device == device


def test_other_roles_preprocess_on_the_cpu() -> None:
    assert wiring("").instances[Role.DECODE].preprocessing_device == "cpu"


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (["--port=1"], "--port=1"),
        (["--port", "1"], "--port 1"),
        (["-tp", "2"], "-tp 2"),
        (["-tp=2"], "-tp=2"),
        (["--ec_transfer_config.ec_role", "x"], "--ec_transfer_config.ec_role x"),
        (["--served-model-name", "a", "b"], "--served-model-name a b"),
        (["--enforce-eager"], "--enforce-eager"),
    ],
)
def test_arguments_as_they_were_written(words: list[str], written: str) -> None:
    instance = wiring(f"decode: {{args: {words}}}").instances[Role.DECODE]
    (argument,) = instance.args.arguments
    assert instance.written(argument) == written


@pytest.mark.parametrize(
    ("name", "shown"),
    [("A", "A=x"), ("VLLM_API_KEY", "VLLM_API_KEY"), ("hf_token", "hf_token"), ("DB_PASSWORD", "DB_PASSWORD")],
)
def test_values_of_secrets_are_not_shown(name: str, shown: str) -> None:
    env = wiring(f"decode: {{env: [{{name: {name}, value: x}}]}}").instances[Role.DECODE].env
    assert env[name].shown == shown
