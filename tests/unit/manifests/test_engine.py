import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from epd_operator.api.pod import Resources
from epd_operator.manifests.engine import resources
from tests.unit.manifests.specs import (
    CLAIM,
    HOSTILE,
    Object,
    container,
    deployment,
    expanded,
    one,
    planned,
    pod,
    rendered,
    served_names,
)

SHARED: Object = {"embeddings": {"connector": "ECExampleConnector", "volume": CLAIM}}


def value_after(flag: str, words: list[str]) -> str:
    return words[words.index(flag) + 1]


@given(served_names)
def test_kubelet_gives_vllm_the_models_name_as_it_is(name: str) -> None:
    words = container(rendered(model={"id": "org/model", "servedName": name}), "decode")["args"]
    assert expanded(value_after("--served-model-name", words), {"POD_IP": "10.0.0.1"}) == name


def test_kubelet_gives_vllm_id_and_revision_as_they_are() -> None:
    words = container(rendered(model={"id": "o/$(POD_IP)$$", "revision": "$(HOME)"}), "decode")["args"]
    variables = {"POD_IP": "10.0.0.1", "HOME": "/cache"}
    assert expanded(words[0], variables) == "o/$(POD_IP)$$"
    assert expanded(value_after("--revision", words), variables) == "$(HOME)"


def test_a_users_args_and_variables_are_rendered_as_written() -> None:
    words = ["--chat-template=$(POD_IP)", "--override-generation-config", '{"a": "$(POD_IP)"}']
    env = [{"name": f"X_{index}", "value": text} for index, text in enumerate(HOSTILE)]
    found = container(rendered(decode={"args": words, "env": env}), "decode")
    assert found["args"][-3:] == words
    assert [variable for variable in found["env"] if variable["name"].startswith("X_")] == env


def test_the_pods_address_goes_where_mooncake_wants_it() -> None:
    transfer = {"embeddings": {"connector": "ECMooncakeConnector"}}
    found = container(rendered(encode={}, transfer=transfer), "decode")
    assert '"ec_ip":"10.0.0.1"' in expanded(value_after("--ec-transfer-config", found["args"]), {"POD_IP": "10.0.0.1"})
    assert found["env"][0] == {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def started(command: list[str], args: list[str], root: Path) -> subprocess.CompletedProcess[str]:
    """Run a pod's command with its /dev/shm and /var/lib below a folder, and a vllm that prints its arguments."""
    (root / "bin").mkdir()
    vllm = root / "bin" / "vllm"
    vllm.write_text('#!/bin/sh\nprintf "%s\\0" "$0" "$@"\n')
    vllm.chmod(0o755)
    script = command[2].replace("/dev/shm", str(root / "shm")).replace("/var/lib", str(root / "lib"))
    env = {"PATH": f"{root}/bin:/usr/bin:/bin", "HOME": str(root / "cache" / "home"), "HOSTNAME": "pod"}
    run = [command[0], command[1], script, *command[3:], *args]
    return subprocess.run(run, env=env, capture_output=True, text=True, check=False)


def test_the_command_cleans_up_makes_directories_and_becomes_vllm(tmp_path: Path) -> None:
    shm = tmp_path / "shm"
    shm.mkdir()
    stale = ["vllm_ec_1_dp0.mmap", "psm_1", "sem.mp-1", "torch_1", "nccl-1", "VLLM_1"]
    for name in [*stale, "theirs", "my_vllm_1"]:
        (shm / name).touch()
    (tmp_path / "lib").mkdir()
    found = container(rendered(encode={}, transfer=SHARED), "encode")
    words = ["a b", "'", '"', "$HOME", "`id`", "*", "", "line\nline", "--json={}"]
    done = started(found["command"], words, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\0")[1:-1] == ["serve", *words]
    assert {path.name for path in shm.iterdir()} == {"theirs", "my_vllm_1"}
    assert (tmp_path / "cache" / "home").is_dir()
    revision = one(rendered(encode={}, transfer=SHARED), "Service", "encode")["metadata"]["labels"]["epd.dev/revision"]
    directory = tmp_path / "lib" / "epd" / "embeddings" / "a" / revision
    assert list(directory.iterdir()) == []


def test_a_shared_directory_that_cannot_be_made_ends_the_container_with_words(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "epd").write_text("a file in the way")
    found = container(rendered(encode={}, transfer=SHARED), "encode")
    done = started(found["command"], [], tmp_path)
    assert done.returncode != 0
    assert "/lib/epd" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(("role", "starts"), [("encode", False), ("decode", True)])
def test_a_full_volume_ends_who_writes_there_and_not_who_reads(tmp_path: Path, role: str, *, starts: bool) -> None:
    objects = rendered(encode={}, transfer=SHARED)
    revision = one(objects, "Service", "encode")["metadata"]["labels"]["epd.dev/revision"]
    directory = tmp_path / "lib" / "epd" / "embeddings" / "a" / revision
    directory.mkdir(parents=True)
    (directory / ".pod").symlink_to("/dev/full")  # who writes there is told that no space is left
    found = container(objects, role)
    done = started(found["command"], [], tmp_path)
    assert (done.returncode == 0) == starts
    assert ("No space left on device" in done.stderr) != starts


@pytest.mark.parametrize(
    ("written", "device", "count", "expected"),
    [
        ({}, None, 0, {}),
        ({}, "nvidia.com/gpu", 2, {"limits": {"nvidia.com/gpu": "2"}}),
        ({"limits": {"cpu": 2}}, "amd.com/gpu", 1, {"limits": {"cpu": "2", "amd.com/gpu": "1"}}),
        ({"requests": {"memory": "1Gi"}}, None, 0, {"requests": {"memory": "1Gi"}}),
        ({"claims": [{"name": "gpu"}], "limits": {}}, None, 0, {"claims": [{"name": "gpu"}]}),
    ],
)
def test_resources(written: Object, device: str | None, count: int, expected: Object) -> None:
    assert resources(Resources.model_validate(written), device, count) == expected


def test_a_gpu_pod_asks_for_its_devices_and_the_nodes_that_have_them() -> None:
    device = {"type": "CUDA", "product": "NVIDIA-L40S", "runtimeClassName": "nvidia"}
    objects = rendered(device=device, decode={"parallelism": {"tensor": 2}})
    spec = pod(objects, "decode")
    assert spec["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "2"}}
    assert spec["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-L40S"}
    assert spec["runtimeClassName"] == "nvidia"
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]


def test_a_cpu_pod_asks_for_no_device() -> None:
    spec = pod(rendered(device={"type": "CPU"}), "decode")
    assert not {"nodeSelector", "runtimeClassName", "tolerations"} & spec.keys()
    assert "resources" not in spec["containers"][0]


@pytest.mark.parametrize(
    ("role", "drain", "startup"), [({}, 600, 3600), ({"drainTimeoutSeconds": 5, "startupTimeoutSeconds": 61}, 5, 61)]
)
def test_times(role: Object, drain: int, startup: int) -> None:
    objects = rendered(decode=role)
    spec = pod(objects, "decode")
    engine = spec["containers"][0]
    sleep = engine["lifecycle"]["preStop"]["sleep"]["seconds"]
    probe = engine["startupProbe"]
    assert value_after("--shutdown-timeout", engine["args"]) == str(drain)
    assert spec["terminationGracePeriodSeconds"] > sleep + drain
    assert startup <= probe["periodSeconds"] * probe["failureThreshold"] < startup + probe["periodSeconds"]
    assert one(objects, "Deployment", "decode")["spec"]["progressDeadlineSeconds"] >= startup


ROLLOUTS: list[tuple[Object, Object]] = [
    ({}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
    ({"strategy": "Recreate"}, {"type": "Recreate"}),
    ({"strategy": "BlueGreen"}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}),
    (
        {"strategy": "BlueGreen", "maxSurge": 0},
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    ),
    (
        {"maxSurge": "25%", "maxUnavailable": 2},
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 2}},
    ),
]


@pytest.mark.parametrize(("rollout", "strategy"), ROLLOUTS)
def test_rollouts(rollout: dict[str, Any], strategy: Object) -> None:
    assert one(rendered(rollout=rollout), "Deployment", "decode")["spec"]["strategy"] == strategy


def test_a_paused_rollout_pauses_the_roles() -> None:
    assert one(rendered(rollout={"paused": True}), "Deployment", "decode")["spec"]["paused"] is True
    assert "paused" not in one(rendered(), "Deployment", "decode")["spec"]


def test_the_template_hash_is_the_plans() -> None:
    annotations = one(rendered(), "Deployment", "decode")["spec"]["template"]["metadata"]["annotations"]
    assert annotations["epd.dev/template-hash"] == planned(deployment()).roles[0].template_hash
