"""What goes wrong on a node is told by the object, in the kubelet's words, soon after the kubelet knows."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hack.cluster.errors import ClusterError
from hack.cluster.kubectl import Object
from hack.cluster.provider import Provider
from hack.demo_cluster.deployment import Deployed
from hack.demo_cluster.installation import Installation
from hack.demo_cluster.volumes import Volumes
from hack.images.catalog import ENGINE_SIM
from tests.e2e.simulated import CLAIM, simulated
from tests.integration.eventually import eventually

pytestmark = pytest.mark.e2e

TOLD_SECONDS = 30
KUBELET_SECONDS = 120
GPU = {"type": "CUDA", "resourceName": "nvidia.com/gpu"}
MEMORY_LIMIT = {"limits": {"memory": "200Mi"}, "requests": {"cpu": "10m", "memory": "64Mi"}}


@pytest.fixture(scope="module")
def engine(installed: Installation) -> str:
    """The image of the simulator, on the nodes."""
    return installed.image(ENGINE_SIM)


@pytest.fixture
def deployed(installed: Installation, volumes: Volumes, namespace: str) -> Iterator[Deployed]:
    """An object by its name, with a claim for embeddings."""
    volumes.claim(namespace, CLAIM)
    made = Deployed(installed.kubectl, namespace, "trouble")
    yield made
    made.delete()


def statuses(deployed: Deployed, component: str) -> list[Object]:
    found = deployed.pods(component)
    return [status for pod in found for status in pod["status"].get("containerStatuses", [])]


def waiting(deployed: Deployed, component: str) -> list[str]:
    return [status["state"].get("waiting", {}).get("reason", "") for status in statuses(deployed, component)]


def ended(deployed: Deployed, component: str) -> list[str]:
    states = [state for status in statuses(deployed, component) for state in (status["state"], status["lastState"])]
    return [state["terminated"]["reason"] for state in states if "terminated" in state]


def env(name: str, value: str) -> list[Object]:
    return [{"name": name, "value": value}]


Known = Callable[[Deployed], bool]
TROUBLE: dict[str, tuple[dict[str, Any], Known, str, str]] = {
    "wrong image": (
        {"engine": {"version": "0.33.0", "image": "localhost:1/absent:1"}},
        lambda it: bool({"ErrImagePull", "ImagePullBackOff"} & set(waiting(it, "encode"))),
        "ImagePullFailed",
        "localhost:1/absent:1",
    ),
    "wrong model": (
        {"model": {"id": "./absent", "architecture": "Qwen2VLForConditionalGeneration", "volume": {"emptyDir": {}}}},
        lambda it: "Error" in ended(it, "encode"),
        "CrashLooping",
        "no config.json in it",
    ),
    "too little memory": (
        {"encode": {"resources": MEMORY_LIMIT, "sharedMemorySize": "64Mi", "env": env("EPD_SIM_MEMORY_MB", "400")}},
        lambda it: "OOMKilled" in ended(it, "encode"),
        "OutOfMemory",
        "exit code 137",
    ),
    "missing secret": (
        {"model": {"id": "sim/vision", "tokenSecretRef": {"name": "hub", "key": "token"}}},
        lambda it: "CreateContainerConfigError" in waiting(it, "encode"),
        "ContainerConfigError",
        'secret "hub" not found',
    ),
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_of_a_pod_is_told(deployed: Deployed, engine: str, trouble: str) -> None:
    changes, known, reason, words = TROUBLE[trouble]
    deployed.apply(simulated("trouble", engine, **changes))
    eventually("the kubelet knows", lambda: known(deployed), seconds=KUBELET_SECONDS)
    told(deployed, reason, words)


def told(deployed: Deployed, reason: str, words: str) -> None:
    """The object says so, in its conditions and in what `kubectl get` prints."""

    def found() -> bool:
        ready = deployed.condition("Ready")
        return ready.get("reason") == reason and words in ready["message"]

    try:
        eventually(f"{reason}: {words}", found, seconds=TOLD_SECONDS)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{deployed.diagnosis()}") from None
    assert reason in deployed.row()


def test_a_full_volume_is_told_and_passes(
    provider: Provider, volumes: Volumes, deployed: Deployed, engine: str
) -> None:
    path = volumes.path(deployed.namespace, CLAIM)
    if path is None:
        pytest.skip("what is behind a claim cannot be filled here")
    options = "size=64k,uid=1000,gid=1000"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "full", str(path)], check=True)
    try:
        filler = path / "filler"
        with pytest.raises(OSError, match="No space left"):
            filler.write_bytes(bytes(1 << 20))
        deployed.apply(simulated("trouble", engine))
        eventually("the kubelet knows", lambda: "Error" in ended(deployed, "encode"), seconds=KUBELET_SECONDS)
        told(deployed, "CrashLooping", "No space left on device")
        filler.unlink()
        deployed.wait_ready(180)
        deployed.delete()
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def no_gpus(provider: Provider) -> Iterator[None]:
    try:
        provider.set_gpus(0)
    except ClusterError as error:
        pytest.skip(str(error))
    yield
    provider.set_gpus(0)


@pytest.mark.usefixtures("no_gpus")
def test_gpus_that_are_not_there_and_come(provider: Provider, deployed: Deployed, engine: str) -> None:
    deployed.apply(simulated("trouble", engine, device=GPU))
    told(deployed, "Unschedulable", "Insufficient nvidia.com/gpu")
    devices = deployed.condition("DevicesAvailable")
    assert (devices["status"], devices["reason"]) == ("False", "NoNodeOffersDevice")
    provider.set_gpus(2)
    deployed.wait_ready(180)
    assert deployed.condition("DevicesAvailable")["status"] == "True"


@pytest.mark.usefixtures("no_gpus")
def test_no_pod_is_made_for_gpus_that_are_not_there_if_the_user_says_so(
    provider: Provider, deployed: Deployed, engine: str
) -> None:
    deployed.apply(simulated("trouble", engine, device=GPU, preflight="Enforce"))
    told(deployed, "PreflightFailed", "no pod is made")
    assert "none of 1 nodes offers that" in deployed.condition("Stalled")["message"]
    assert deployed.pods("encode") == []
    provider.set_gpus(2)
    deployed.wait_ready(180)
