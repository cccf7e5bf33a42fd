"""The command line of each role."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from epd_operator.api.parse import parse
from epd_operator.api.role import Role
from epd_operator.engine.command import command, model_argument, served_name
from epd_operator.engine.flags import parse_args
from epd_operator.engine.site import Ports, Site
from epd_operator.engine.wiring import wire
from tests.unit.objects import wiring
from tests.unit.strategies import acceptable_documents


def flags(spec: str, role: Role) -> dict[str, Any]:
    """What vLLM's parser makes of the command line."""
    wired = wiring(spec)
    parsed = parse_args(command(wired, role).argv[1:], wired.capabilities)
    assert parsed.problems == ()
    return dict(parsed.values)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(acceptable_documents())
def test_vllms_parser_takes_every_command_line(document: dict[str, Any]) -> None:
    parsed = parse(document)
    assert parsed.deployment is not None
    wired = wire(parsed.deployment)
    for role, instance in wired.instances.items():
        made = command(wired, role)
        read = parse_args(made.argv[1:], wired.capabilities)
        assert read.problems == ()
        assert all(arg.reason for arg in made.args)
        user = len(instance.words)
        assert made.argv[len(made.argv) - user :] == instance.words
        given_once = [argument.name for argument in read.arguments if argument.index < len(made.argv) - 1 - user]
        assert len(set(given_once)) == len(given_once)


def test_an_encoder() -> None:
    assert flags("", Role.ENCODE) == {
        "--served-model-name": ["Qwen/Qwen3-VL-8B-Instruct"],
        "--port": 8000,
        "--shutdown-timeout": 120,
        "--disable-access-log-for-endpoints": "/health,/metrics",
        "--allowed-media-domains": ["only-data-urls.invalid"],
        "--mm-tensor-ipc": "torch_shm",
        "--media-io-kwargs": {"video": {"backend": "opencv"}},
        "--enforce-eager": True,
        "--max-num-batched-tokens": 16384,
        "--ec-transfer-config": {
            "ec_connector": "ECCPUConnector",
            "ec_connector_extra_config": {"ec_cpu_bytes": 4 << 30, "ec_enable_nixl": True},
            "ec_role": "ec_producer",
        },
    }


def test_releases_that_derive_less_are_told_more() -> None:
    claim = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}"
    encoder = flags(f"{{engine: {{version: 0.28.0}}, {claim}}}", Role.ENCODE)
    assert encoder["--mm-encoder-only"] is True
    assert encoder["--enable-prefix-caching"] is False
    assert flags(f"{{engine: {{version: 0.29.0}}, {claim}}}", Role.DECODE)["--enable-mm-embeds"] is True
    assert "--enable-mm-embeds" not in flags("{engine: {version: 0.29.0}, encode: <absent>}", Role.DECODE)
    assert "--enable-mm-embeds" not in flags("", Role.DECODE)
    assert "--mm-encoder-only" not in flags("", Role.ENCODE)


@pytest.mark.parametrize(
    ("preprocessing", "parallelism", "device", "ipc"),
    [
        ("{}", 1, None, "torch_shm"),
        ("{}", 2, None, None),
        ("{device: CPU}", 1, "cpu", "torch_shm"),
        ("{device: Accelerator}", 1, "cuda", "torch_shm"),
        ("{device: Accelerator, tensorIPC: direct_rpc}", 1, "cuda", None),
        ("{tensorIPC: direct_rpc}", 1, None, None),
    ],
)
def test_preprocessing(preprocessing: str, parallelism: int, device: str | None, ipc: str | None) -> None:
    encode = f"encode: {{preprocessing: {preprocessing}, parallelism: {{tensor: {parallelism}}}}}"
    found = flags(encode, Role.ENCODE)
    assert found.get("--mm-processor-device") == device
    assert found.get("--mm-tensor-ipc") == ipc


def test_parallelism() -> None:
    found = flags("decode: {parallelism: {tensor: 2, pipeline: 3, data: 4}}", Role.DECODE)
    names = ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size")
    assert tuple(found[name] for name in names) == (2, 3, 4)
    assert not set(names) & flags("", Role.DECODE).keys()


def test_user_args_replace_defaults_however_they_are_spelled() -> None:
    encoder = flags("encode: {args: [--max_num_batched_tokens, '9', --no-enforce-eager]}", Role.ENCODE)
    assert encoder["--max-num-batched-tokens"] == 9
    assert encoder["--enforce-eager"] is False
    wired = wiring("encode: {args: [--max_num_batched_tokens, '9', --no-enforce-eager]}")
    argv = command(wired, Role.ENCODE).argv
    assert "--max-num-batched-tokens" not in argv
    assert "--enforce-eager" not in argv


def test_allowed_domains_are_the_proxys() -> None:
    spec = "proxy: {media: {allowedDomains: [a.example, b.example]}}"
    assert flags(spec, Role.DECODE)["--allowed-media-domains"] == ["a.example", "b.example"]
    empty = flags("proxy: {media: {allowedDomains: []}}", Role.DECODE)
    assert empty["--allowed-media-domains"] == ["only-data-urls.invalid"]


@pytest.mark.parametrize(
    ("model_id", "argument"),
    [
        ("Qwen/Qwen3-VL-8B-Instruct", "Qwen/Qwen3-VL-8B-Instruct"),
        ("./a/b", "/models/a/b"),
        ("/a/", "/models/a"),
        ("./", "/models"),
        ("/", "/models"),
        ("./.hidden", "/models/.hidden"),
    ],
)
def test_every_role_is_given_the_same_model(model_id: str, argument: str) -> None:
    wired = wiring(f"{{prefill: {{}}, model: {{id: {model_id}}}}}")
    assert model_argument(wired) == argument
    assert {command(wired, role).argv[0] for role in Role} == {argument}
    assert served_name(wired) == model_id


def test_names_and_revisions() -> None:
    found = flags("model: {servedName: vision, revision: main}", Role.DECODE)
    assert found["--served-model-name"] == ["vision"]
    assert found["--revision"] == "main"


def test_a_local_process_listens_where_it_is_told() -> None:
    wired = wiring("", local=True)
    site = Site(local=True, models="/m", embeddings_directory="/e", address="127.0.0.1", ports=Ports(http=4711))
    argv = command(wired, Role.ENCODE, site).argv
    words = dict(pairwise(argv))
    assert (words["--host"], words["--port"]) == ("127.0.0.1", "4711")
    assert json.loads(words["--ec-transfer-config"])["ec_connector_extra_config"] == {"shared_storage_path": "/e"}
