"""What keeps pods from serving is told in words, and passes with its cause."""

import secrets

import pytest

from hack.cluster.kubectl import Kubectl, Object
from hack.cluster.testkubelet import Fate, FateKind, KubeletThread, NodeSpec
from tests.integration.conftest import AddNode
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import Deployments, vision

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]

ENCODE = {"app.kubernetes.io/component": "encode"}


def device() -> str:
    """A resource that only this test's nodes have."""
    return f"test.epd.dev/gpu-{secrets.token_hex(3)}"


def events(kubectl: Kubectl, namespace: str) -> list[str]:
    found = kubectl.items("get", "events.events.k8s.io", "-n", namespace)
    return [event["reason"] for event in found if event["regarding"]["kind"] == "EPDDeployment"]


def test_pods_that_find_no_node(kubectl: Kubectl, namespace: str, epd: Deployments, add_node: AddNode) -> None:
    resource = device()
    epd.apply(vision(device={"resourceName": resource}))
    condition = epd.wait("Ready", "False", reason="Unschedulable")
    assert f"Insufficient {resource}" in condition["message"]
    assert epd.condition("DevicesAvailable")["reason"] == "NoNodeOffersDevice"
    assert epd.condition("Reconciling")["status"] == "True"
    assert epd.condition("Available")["status"] == "False"
    eventually("an event says so", lambda: "Unschedulable" in events(kubectl, namespace))
    add_node(NodeSpec("late", {resource: 4}))
    epd.wait("Ready")
    assert epd.condition("DevicesAvailable")["status"] == "True"
    assert epd.condition("Reconciling") == {}


FATES = [
    pytest.param(Fate(FateKind.IMAGE), "ImagePullFailed", ["ErrImagePull", "vllm/vllm-openai:v0.33.0"], id="image"),
    pytest.param(
        Fate(FateKind.CRASH, message="ValueError: no such model"),
        "CrashLooping",
        ["container engine", "exit code 1", "ValueError: no such model"],
        id="crash",
    ),
    pytest.param(Fate(FateKind.OOM), "OutOfMemory", ["OOMKilled", "exit code 137"], id="memory"),
]


@pytest.mark.usefixtures("gpu_node")
@pytest.mark.parametrize(("fate", "reason", "words"), FATES)
def test_a_pod_that_fails(  # noqa: PLR0917  pytest passes them by name
    kubelet: KubeletThread, namespace: str, epd: Deployments, fate: Fate, reason: str, words: list[str]
) -> None:
    kubelet.set_fate(namespace, ENCODE, fate)
    epd.apply(vision())
    condition = epd.wait("Ready", "False", reason=reason)
    assert "pod vision-encode-" in condition["message"]
    eventually(str(words), lambda: all(word in epd.condition("Ready")["message"] for word in words))
    kubelet.clear_fates(namespace)
    epd.wait("Ready")


@pytest.mark.usefixtures("gpu_node")
def test_a_secret_that_is_missing(kubectl: Kubectl, namespace: str, epd: Deployments) -> None:
    epd.apply(vision(model={"id": "a/b", "tokenSecretRef": {"name": "hub", "key": "token"}}))
    condition = epd.wait("Ready", "False", reason="ContainerConfigError")
    assert 'secret "hub" not found' in condition["message"]
    kubectl("create", "secret", "generic", "hub", "-n", namespace, "--from-literal=token=x")
    epd.wait("Ready")


@pytest.mark.usefixtures("gpu_node")
def test_a_key_that_was_deleted_is_made_again_for_pods_that_need_it(
    kubectl: Kubectl, namespace: str, epd: Deployments
) -> None:
    epd.apply(vision())
    epd.wait("Ready")
    kubectl("delete", "secret/vision-engine-key", "-n", namespace)
    kubectl("delete", "pods", "-n", namespace, "-l", "app.kubernetes.io/instance=vision", "--wait=false")
    eventually("the key is back", lambda: kubectl.exists("secret/vision-engine-key", "-n", namespace), seconds=60)
    epd.wait("Ready")


@pytest.mark.usefixtures("gpu_node")
def test_what_quota_refuses_is_told(kubectl: Kubectl, namespace: str, epd: Deployments) -> None:
    kubectl("create", "quota", "few", "-n", namespace, "--hard=pods=1")
    eventually("the quota counts", lambda: quota(kubectl, namespace).get("status", {}).get("hard"))
    epd.apply(vision())
    condition = epd.wait("Ready", "False", reason="APIRefused")
    assert "exceeded quota: few" in condition["message"]
    kubectl("delete", "quota", "few", "-n", namespace)
    # The Deployment controller waits longer each time: a new template makes it try at once.
    epd.patch({"encode": {"env": [{"name": "A", "value": "1"}]}, "decode": {"env": [{"name": "A", "value": "1"}]}})
    eventually("pods are made", lambda: len(kubectl.items("get", "pods", "-n", namespace)) >= 2, seconds=90)


def quota(kubectl: Kubectl, namespace: str) -> Object:
    return kubectl.json("get", "quota/few", "-n", namespace)


@pytest.mark.usefixtures("gpu_node")
def test_times_move_only_with_the_status(kubectl: Kubectl, namespace: str, epd: Deployments) -> None:
    epd.apply(vision())
    epd.wait("Ready")
    before = {c["type"]: c["lastTransitionTime"] for c in epd.status()["conditions"]}
    epd.patch({"proxy": {"replicas": 2}})
    epd.wait("Ready")
    after = {c["type"]: c["lastTransitionTime"] for c in epd.status()["conditions"]}
    assert {**after, "Ready": ""} == {**before, "Ready": ""}
    observed = {c["observedGeneration"] for c in epd.status()["conditions"]}
    assert observed == {epd.get()["metadata"]["generation"]}
