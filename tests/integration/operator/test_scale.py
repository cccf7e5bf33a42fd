"""EPDRoleScale: seeded with the current count, then written by others and followed."""

import json

import pytest

from hack.cluster.kubectl import Kubectl, Object
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import Deployments, vision

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("operator", "gpu_node")]

EXTERNAL = {"scaling": {"mode": "External"}}


def scale(epd: Deployments) -> Object:
    return epd.kubectl.json("get", "epdrolescale/vision-encode", "-n", epd.namespace)


def replicas(epd: Deployments) -> int:
    return int(next(d for name, d in epd.children("deployments").items() if "-encode-" in name)["spec"]["replicas"])


def test_switching_it_on_drains_nothing_and_kubectl_scale_works(
    kubectl: Kubectl, namespace: str, epd: Deployments
) -> None:
    epd.apply(vision(encode={"replicas": 3}))
    epd.wait("Ready")
    pods = pod_names(epd)
    epd.patch({"encode": {"replicas": None, **EXTERNAL}})
    epd.wait("Ready")
    eventually("it is seeded", lambda: kubectl.exists("epdrolescale/vision-encode", "-n", namespace))
    assert scale(epd)["spec"] == {"deployment": "vision", "role": "encode", "replicas": 3}
    assert pod_names(epd) == pods
    kubectl("scale", "epdrolescale/vision-encode", "-n", namespace, "--replicas=5")
    eventually("five", lambda: replicas(epd) == 5)
    epd.wait("Ready")
    eventually("its status follows", lambda: scale(epd)["status"].get("replicas") == 5)
    selector = scale(epd)["status"]["selector"]
    chosen = kubectl.items("get", "pods", "-n", namespace, "-l", selector)
    assert len(chosen) == 5
    for count in (0, 1):
        kubectl("scale", "epdrolescale/vision-encode", "-n", namespace, f"--replicas={count}")
        eventually(f"{count}", lambda: replicas(epd) == count)  # noqa: B023  asked at once
        epd.wait("Ready")
    epd.patch({"encode": {"replicas": 2, "scaling": None}})
    eventually("the object goes", lambda: not kubectl.exists("epdrolescale/vision-encode", "-n", namespace))
    assert replicas(epd) == 2


def pod_names(epd: Deployments) -> set[str]:
    return {name for name in epd.children("pods") if "-encode-" in name}


def test_its_spec_is_never_written_again(kubectl: Kubectl, namespace: str, epd: Deployments) -> None:
    epd.apply(vision(encode=EXTERNAL))
    epd.wait("Ready")
    patch = json.dumps({"spec": {"replicas": 4}})
    kubectl("patch", "epdrolescale/vision-encode", "-n", namespace, "--type=merge", "-p", patch)
    eventually("four", lambda: replicas(epd) == 4)
    epd.patch({"proxy": {"replicas": 2}})
    epd.wait("Ready")
    assert scale(epd)["spec"]["replicas"] == 4
    full = kubectl.json("get", "epdrolescale/vision-encode", "-n", namespace, "--show-managed-fields")
    managers = {entry["manager"] for entry in full["metadata"]["managedFields"] if "f:spec" in entry["fieldsV1"]}
    assert managers == {"epd-operator", "kubectl-patch"}


def test_the_autoscaler_of_kubernetes_is_followed(kubectl: Kubectl, namespace: str, epd: Deployments) -> None:
    """Without a metrics server it still holds the count between its bounds."""
    epd.apply(vision(encode=EXTERNAL))
    epd.wait("Ready")
    autoscaler: Object = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "encoders"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "epd.dev/v1alpha1", "kind": "EPDRoleScale", "name": "vision-encode"},
            "minReplicas": 3,
            "maxReplicas": 4,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                }
            ],
        },
    }
    kubectl.apply([autoscaler], namespace)
    eventually("it has raised the count", lambda: replicas(epd) == 3, seconds=90)
    eventually("they are ready", lambda: epd.status()["roles"]["encode"]["summary"] == "3/3")
    eventually("the scale says so", lambda: scale(epd)["status"]["replicas"] == 3)
    autoscaler["spec"] |= {"minReplicas": 1, "maxReplicas": 2}
    kubectl.apply([autoscaler], namespace)
    eventually("it has lowered the count", lambda: replicas(epd) == 2, seconds=90)
    found = epd.kubectl.items("get", "deployments", "-n", namespace, "--show-managed-fields")
    entries = [entry for body in found for entry in body["metadata"]["managedFields"]]
    assert {e["manager"] for e in entries if "f:replicas" in e["fieldsV1"].get("f:spec", {})} == {"epd-operator"}


def test_one_that_a_user_made_before_is_followed(kubectl: Kubectl, namespace: str, epd: Deployments) -> None:
    body = {
        "apiVersion": "epd.dev/v1alpha1",
        "kind": "EPDRoleScale",
        "metadata": {"name": "vision-encode"},
        "spec": {"deployment": "vision", "role": "encode", "replicas": 2},
    }
    kubectl.apply([body], namespace)
    epd.apply(vision(encode=EXTERNAL))
    epd.wait("Ready")
    assert replicas(epd) == 2
    assert "ownerReferences" not in scale(epd)["metadata"]
