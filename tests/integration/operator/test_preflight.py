"""What the cluster lacks is told before, and as asked, instead of pods that wait."""

import secrets

import pytest

from hack.cluster.kubectl import Kubectl, Object
from hack.cluster.testkubelet import NodeSpec, Taint
from tests.integration.conftest import AddNode
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import Deployments, vision

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator")]

PRODUCT = "nvidia.com/gpu.product"


@pytest.fixture
def resource() -> str:
    """A device that only this test's nodes have."""
    return f"test.epd.dev/gpu-{secrets.token_hex(3)}"


@pytest.mark.usefixtures("kubelet")
def test_enforce_makes_no_pod_until_a_node_will_do(
    kubectl: Kubectl, namespace: str, epd: Deployments, add_node: AddNode, resource: str
) -> None:
    device = {"resourceName": resource, "product": "X1"}
    epd.apply(vision(device=device, preflight="Enforce"))
    condition = epd.wait("Stalled", reason="PreflightFailed")
    assert f"encode asks for 1 {resource} on a node with {PRODUCT}=X1, and none of" in condition["message"]
    assert epd.condition("Ready")["reason"] == "PreflightFailed"
    assert not epd.children("deployments")
    add_node(NodeSpec("other", {resource: 4}, {PRODUCT: "X0"}))
    eventually("the labels are told", lambda: "none of these has the labels" in told(epd))
    add_node(NodeSpec("tainted", {resource: 4}, {PRODUCT: "X1"}, (Taint("dedicated"),)))
    eventually("the taint is told", lambda: "dedicated" in told(epd))
    assert not kubectl.items("get", "pods", "-n", namespace)
    add_node(NodeSpec("right", {resource: 4}, {PRODUCT: "X1"}))
    epd.wait("Ready")
    assert epd.condition("DevicesAvailable")["reason"] == "NodesOfferDevices"


def told(epd: Deployments) -> str:
    return str(epd.condition("DevicesAvailable")["message"])


@pytest.mark.usefixtures("kubelet")
def test_warn_makes_pods_that_wait(epd: Deployments, resource: str) -> None:
    epd.apply(vision(device={"resourceName": resource}))
    epd.wait("DevicesAvailable", "False", reason="NoNodeOffersDevice")
    epd.wait("Ready", "False", reason="Unschedulable")


def claim(mode: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "shared"},
        "spec": {
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "none",
        },
    }


@pytest.mark.usefixtures("gpu_node", "kubelet")
def test_claims_that_are_missing_or_not_shareable_are_told(kubectl: Kubectl, namespace: str, epd: Deployments) -> None:
    volume = {"persistentVolumeClaim": {"claimName": "shared"}}
    epd.apply(vision(transfer={"embeddings": {"connector": "ECExampleConnector", "volume": volume}}))
    condition = epd.wait("DevicesAvailable", "False", reason="VolumeNotFound")
    assert "the PersistentVolumeClaim shared does not exist" in condition["message"]
    kubectl.apply([claim("ReadWriteOnce")], namespace)
    condition = epd.wait("DevicesAvailable", "False", reason="VolumeNotShareable")
    assert "is ReadWriteOnce, and 2 pods (decode, encode) mount it" in condition["message"]
    kubectl("delete", "pvc/shared", "-n", namespace, "--wait=false")
    kubectl("patch", "pvc/shared", "-n", namespace, "--type=merge", '-p={"metadata":{"finalizers":null}}', check=False)
    eventually("the claim is gone", lambda: not kubectl.exists("pvc/shared", "-n", namespace))
    kubectl.apply([claim("ReadWriteMany")], namespace)
    epd.wait("DevicesAvailable")


def test_a_runtime_class_that_is_missing_is_told(epd: Deployments) -> None:
    epd.apply(vision(device={"runtimeClassName": "no-such-class"}))
    condition = epd.wait("DevicesAvailable", "False", reason="ClassNotFound")
    assert "RuntimeClass no-such-class does not exist in this cluster" in condition["message"]
