"""The environment of each role."""

import pytest

from epd_operator.api.role import Role
from epd_operator.engine.environment import Variable, environment, wired_variables
from epd_operator.engine.site import POD, Ports, Site
from tests.unit.objects import wiring


def shown(spec: str, role: Role, site: Site = POD) -> dict[str, str]:
    wired = wiring(spec, local=site.local)
    return {variable.name: variable.shown for variable in environment(wired, wired.instances[role], site)}


def test_every_variable_has_a_reason_and_one_place() -> None:
    wired = wiring("prefill: {}")
    for instance in wired.instances.values():
        variables = environment(wired, instance, POD)
        assert all(variable.reason for variable in variables)
        assert len({variable.name for variable in variables}) == len(variables)
        assert all((variable.value is None) == (variable.source is not None) for variable in variables)


def test_pods_have_addresses_keys_and_writable_places() -> None:
    env = shown("", Role.DECODE)
    assert env["POD_IP"] == "$(status.podIP)"
    assert env["VLLM_API_KEY"] == "$(secret m-engine-key/key)"
    assert env["HOME"] == "/cache/home"
    assert env["HF_HOME"] == "/cache/huggingface"
    assert env["VLLM_NO_USAGE_STATS"] == "1"
    assert env["VLLM_MEDIA_URL_ALLOW_REDIRECTS"] == "0"


def test_local_processes_have_none_of_that() -> None:
    env = shown("", Role.DECODE, Site(local=True, address="127.0.0.1"))
    assert not {"POD_IP", "VLLM_API_KEY", "HOME", "HF_HOME"} & env.keys()


@pytest.mark.parametrize(
    ("model", "home"),
    [
        ("{id: a/b, volume: {emptyDir: {}}}", "/models/huggingface"),
        ("{id: ./a, volume: {emptyDir: {}}}", "/cache/huggingface"),
        ("{id: a/b}", "/cache/huggingface"),
    ],
)
def test_downloads_are_kept_on_the_model_volume(model: str, home: str) -> None:
    assert shown(f"model: {model}", Role.DECODE)["HF_HOME"] == home


@pytest.mark.parametrize(
    ("spec", "role", "spawn"),
    [
        ("", Role.ENCODE, "spawn"),
        ("encode: {preprocessing: {tensorIPC: direct_rpc}}", Role.ENCODE, None),
        ("encode: {parallelism: {tensor: 2}}", Role.ENCODE, None),
        ("", Role.DECODE, None),
    ],
)
def test_torch_shm_comes_with_spawn(spec: str, role: Role, spawn: str | None) -> None:
    assert shown(spec, role).get("VLLM_WORKER_MULTIPROC_METHOD") == spawn


def test_side_channels_are_at_the_pods_address() -> None:
    assert shown("prefill: {}", Role.ENCODE)["VLLM_EC_SIDE_CHANNEL_HOST"] == "$(status.podIP)"
    prefill = shown("prefill: {}", Role.PREFILL)
    assert prefill["VLLM_EC_SIDE_CHANNEL_HOST"] == prefill["VLLM_NIXL_SIDE_CHANNEL_HOST"] == "$(status.podIP)"
    assert (prefill["VLLM_EC_SIDE_CHANNEL_PORT"], prefill["VLLM_NIXL_SIDE_CHANNEL_PORT"]) == ("5500", "5600")
    assert "VLLM_EC_SIDE_CHANNEL_HOST" not in shown("prefill: {}", Role.DECODE)


def test_local_side_channels_have_ports_of_their_own() -> None:
    site = Site(local=True, address="127.0.0.1", ports=Ports(kv_side_channel=4711))
    env = shown("prefill: {}", Role.DECODE, site)
    assert (env["VLLM_NIXL_SIDE_CHANNEL_HOST"], env["VLLM_NIXL_SIDE_CHANNEL_PORT"]) == ("127.0.0.1", "4711")


def test_the_users_env_replaces_defaults_but_not_the_wiring() -> None:
    spec = "decode: {env: [{name: HF_HOME, value: /x}, {name: MINE, value: y}, {name: VLLM_API_KEY, value: z}]}"
    env = shown(spec, Role.DECODE)
    assert (env["HF_HOME"], env["MINE"]) == ("/x", "y")
    assert env["VLLM_API_KEY"] == "$(secret m-engine-key/key)"


def test_a_token_is_never_written_out() -> None:
    wired = wiring("model: {tokenSecretRef: {name: hf, key: token}}")
    token = wired_variables(wired, wired.instances[Role.DECODE], POD)["HF_TOKEN"]
    assert token.value is None
    assert token.source == {"secretKeyRef": {"name": "hf", "key": "token"}}


def test_the_engine_waits_as_long_as_its_probe() -> None:
    assert shown("decode: {startupTimeoutSeconds: 77}", Role.DECODE)["VLLM_ENGINE_READY_TIMEOUT_S"] == "77"


def test_the_value_of_a_secret_is_not_shown() -> None:
    assert Variable("HF_TOKEN", "hf_abc", "spec.engine.env[0]").shown == "***"
    assert Variable("HF_TOKEN", "", "spec.engine.env[0]").shown == ""
    assert Variable("HF_HOME", "/cache", "spec.engine.env[0]").shown == "/cache"
