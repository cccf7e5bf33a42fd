import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from epd_operator.api.role import Role
from epd_operator.local import programs
from epd_operator.local.errors import LocalError
from epd_operator.local.ports import HeldPorts
from epd_operator.local.programs import Program, Surroundings, check_model, demands, engine_programs, expand, instances
from epd_operator.local.vllm import Vllm
from epd_operator.local.workspace import Workspace
from epd_operator.plan.build import build
from epd_operator.plan.plan import Plan
from tests.unit.objects import deployment

E_P_D = "{encode: {replicas: 2}, prefill: {}, decode: {}}"


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    workspace = Workspace.create()
    yield workspace
    workspace.remove()


@pytest.fixture
def ports() -> Iterator[HeldPorts]:
    with HeldPorts() as ports:
        yield ports


@pytest.fixture
def around(workspace: Workspace, ports: HeldPorts) -> Surroundings:
    vllm = Vllm(Path("/env/bin/vllm"), "0.33.0")
    environ = {"PATH": "/bin", "HF_TOKEN": "from the caller"}
    key, file = workspace.new_key("engine-key")
    shares = {"encode-1": {"CUDA_VISIBLE_DEVICES": "7"}}
    return Surroundings(vllm, workspace, ports, environ, None, None, key, file, shares)


def plan_of(*specs: str) -> Plan:
    return build(deployment(*specs), local=True)


def value(program: Program, flag: str) -> str:
    return program.argv[program.argv.index(flag) + 1]


def test_one_program_an_instance(around: Surroundings) -> None:
    made = engine_programs(plan_of(E_P_D), around)
    assert [(program.name, program.role) for program in made] == [
        ("encode-0", Role.ENCODE),
        ("encode-1", Role.ENCODE),
        ("prefill-0", Role.PREFILL),
        ("decode-0", Role.DECODE),
    ]
    for program in made:
        assert program.argv[:3] == ("/env/bin/vllm", "serve", "Qwen/Qwen3-VL-8B-Instruct")
        assert (value(program, "--host"), value(program, "--port")) == ("127.0.0.1", str(program.port))
        assert program.env["VLLM_API_KEY"] == program.key == around.engine_key
        assert program.env["VLLM_HOST_IP"] == "127.0.0.1"
        assert program.env["PATH"] == "/bin"
        assert around.engine_key not in " ".join(program.argv)
    for variable in ("TMPDIR", "VLLM_API_KEY"):
        assert len({program.env[variable] for program in made}) == (4 if variable == "TMPDIR" else 1)
    assert (
        len({program.port for program in made} | {int(p.env.get("VLLM_NIXL_SIDE_CHANNEL_PORT", 0)) for p in made}) == 7
    )


def test_roles_meet_in_the_runs_directories(around: Surroundings) -> None:
    made = engine_programs(plan_of(E_P_D, "{transfer: {kv: {connector: ExampleConnector}}}"), around)
    configs = [json.loads(value(program, "--ec-transfer-config")) for program in made[:3]]
    assert {config["ec_connector_extra_config"]["shared_storage_path"] for config in configs} == {
        str(around.workspace.embeddings)
    }
    configs = [json.loads(value(program, "--kv-transfer-config")) for program in made[2:]]
    assert {config["kv_connector_extra_config"]["shared_storage_path"] for config in configs} == {
        str(around.workspace.kv)
    }


def test_each_instance_sees_its_own_devices(around: Surroundings) -> None:
    made = engine_programs(plan_of(E_P_D), around)
    assert [program.env.get("CUDA_VISIBLE_DEVICES") for program in made] == [None, "7", None, None]


def test_demands_leave_out_roles_whose_env_chooses_devices() -> None:
    spec = "{decode: {parallelism: {tensor: 4}, env: [{name: CUDA_VISIBLE_DEVICES, value: '0,1,2,3'}]}}"
    assert [(demand.instance, demand.count) for demand in demands(plan_of(E_P_D, spec))] == [
        ("encode-0", 1),
        ("encode-1", 1),
        ("prefill-0", 1),
    ]


def test_the_users_env(around: Surroundings) -> None:
    env = "[{name: A, value: '$(POD_IP):1'}, {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: hf, key: token}}}]"
    [encoder, *_] = engine_programs(plan_of(f"{{engine: {{env: {env}}}}}"), around)
    assert (encoder.env["A"], encoder.env["HF_TOKEN"]) == ("127.0.0.1:1", "from the caller")


def test_a_secret_that_the_caller_does_not_hand_over(around: Surroundings) -> None:
    env = "[{name: OTHER, valueFrom: {secretKeyRef: {name: s, key: k}}}]"
    says = r"spec.engine.env\[0\]: OTHER comes from \$\(secret s/k\), which only a cluster has; set that variable"
    with pytest.raises(LocalError, match=says):
        engine_programs(plan_of(f"{{engine: {{env: {env}}}}}"), around)


@pytest.mark.parametrize(
    ("text", "env", "expanded"),
    [
        ("$(A)-$(A)", {"A": "1"}, "1-1"),
        ("$(UNKNOWN)", {}, "$(UNKNOWN)"),
        ("$$(A)", {"A": "1"}, "$(A)"),
        ("$$$(A)", {"A": "1"}, "$1"),
        ("$A ${A}", {"A": "1"}, "$A ${A}"),
        ("$(A)", {"A": "$(B)", "B": "2"}, "$(B)"),
    ],
)
def test_expand(text: str, env: Mapping[str, str], expanded: str) -> None:
    assert expand(text, env) == expanded


def test_the_proxy(around: Surroundings, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    keys.write_text("first\nsecond\n")
    around = Surroundings(
        around.vllm, around.workspace, around.ports, {}, None, keys, around.engine_key, around.engine_key_file, {}
    )
    plan = plan_of(E_P_D, "{proxy: {mediaForwarding: Raw, limits: {idleTimeoutSeconds: 7}}}")
    engines = engine_programs(plan, around)
    proxy = programs.proxy_program(plan, engines, 1234, around)
    assert proxy.argv[0] == sys.executable
    assert value(proxy, "--encode") == f"{engines[0].url},{engines[1].url}"
    assert value(proxy, "--prefill") == engines[2].url
    assert value(proxy, "--decode") == engines[3].url
    assert value(proxy, "--embeddings-connector") == "ECExampleConnector"
    assert value(proxy, "--kv-connector") == "NixlConnector"
    assert value(proxy, "--api-keys-file") == str(keys)
    assert proxy.key == "first"
    assert Path(value(proxy, "--engine-key-file")).read_text() == around.engine_key
    config = yaml.safe_load(Path(value(proxy, "--config")).read_text())
    assert config["mediaForwarding"] == "Raw"
    assert config["timeouts"] == {"engineKeepAliveSeconds": 120, "idleSeconds": 7}
    assert config["roles"] == ["encode", "prefill", "decode"]


def test_the_proxys_command_line_is_one_that_it_takes(around: Surroundings) -> None:
    from epd_proxy.options import parser, read_options

    plan = plan_of(E_P_D)
    proxy = programs.proxy_program(plan, engine_programs(plan, around), 1234, around)
    options = read_options(parser().parse_args(proxy.argv[4:]))
    assert len(options.members) == 4
    assert options.config.listen.port == 1234


def test_without_the_proxy_installed(around: Surroundings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(LocalError, match="install epd-operator with the extra `run`"):
        programs.proxy_program(plan_of(E_P_D), [], 1234, around)


def test_scaling_and_replicas() -> None:
    plan = plan_of("{encode: {scaling: {mode: External}}, decode: {replicas: 2}}")
    assert [name for name, _ in instances(plan)] == ["encode-0", "decode-0", "decode-1"]


PATH_MODEL = "{model: {id: ./tiny, volume: {persistentVolumeClaim: {claimName: m}}}}"


def test_a_model_in_the_volume(tmp_path: Path, around: Surroundings) -> None:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").touch()
    check_model(plan_of(PATH_MODEL), tmp_path)


def test_a_model_that_is_not_there(tmp_path: Path) -> None:
    check_model(plan_of(), None)
    with pytest.raises(LocalError, match="name the directory that stands for the volume by --models"):
        check_model(plan_of(PATH_MODEL), None)
    with pytest.raises(LocalError, match=r"spec.model.id ./tiny: .*/tiny is no model, it holds no config.json"):
        check_model(plan_of(PATH_MODEL), tmp_path)
