"""The real HorizontalPodAutoscaler moves a role through its EPDRoleScale, and nobody fights it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.cluster.access import Access
from hack.cluster.audit import WRITES, AuditLog
from hack.cluster.kubectl import Kubectl, Object
from tests.integration.conftest import absent
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import Deployments, StartOperator, vision
from tests.integration.operator.metrics_api import MetricsApi

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("gpu_node")]


@pytest.fixture
def metrics(cluster: Access, kubectl: Kubectl, tmp_path: Path) -> Iterator[MetricsApi]:
    if cluster.audit_log is None:
        absent("the API server of EPD_TEST_KUBECONFIG may not reach this machine for metrics")
    with MetricsApi(kubectl, tmp_path) as api:
        yield api


def autoscaler() -> Object:
    """Keeps encoders at 100 MiB each, without delay in either direction."""
    at_once = {"stabilizationWindowSeconds": 0}
    target = {"type": "AverageValue", "averageValue": "100Mi"}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "encoders"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "epd.dev/v1alpha1", "kind": "EPDRoleScale", "name": "vision-encode"},
            "minReplicas": 1,
            "maxReplicas": 4,
            "metrics": [{"type": "Resource", "resource": {"name": "memory", "target": target}}],
            "behavior": {"scaleUp": at_once, "scaleDown": at_once},
        },
    }


def test_an_autoscaler_moves_a_role(  # noqa: PLR0917  pytest passes them by name
    metrics: MetricsApi,
    start_operator: StartOperator,
    kubectl: Kubectl,
    namespace: str,
    epd: Deployments,
    api_requests: AuditLog,
) -> None:
    start_operator().wait_for("the cluster was read")
    metrics.mebibytes = 100
    epd.apply(vision(operatorClass=namespace, encode={"scaling": {"mode": "External"}}))
    epd.wait("Ready")

    def encoders() -> int:
        found = next(d for name, d in epd.children("deployments").items() if "-encode-" in name)
        return int(found["spec"]["replicas"])

    assert encoders() == 1
    kubectl.apply([autoscaler()], namespace)
    for usage, wanted in ((200, 4), (50, 1)):
        metrics.mebibytes = usage
        eventually(f"{wanted} encoders", lambda: encoders() == wanted, seconds=90)  # noqa: B023  asked at once
        metrics.mebibytes = 100
        epd.wait("Ready")
        eventually(
            "the autoscaler sees them",
            lambda: kubectl.json("get", "hpa/encoders", "-n", namespace)["status"].get("currentReplicas") == wanted,  # noqa: B023
        )
    epd.patch({"decode": {"replicas": 2}})  # another change moves no encoder
    epd.wait("Ready")
    assert encoders() == 1
    written = api_requests.requests(user_agent="epd-operator", verbs=WRITES, namespace=namespace)
    assert not [r for r in written if r.resource == "epdrolescales" and r.verb != "create"]
    patches = [r for r in written if r.resource == "deployments" and "-encode-" in r.name]
    assert len(patches) <= 6, "made once, then once for each step of the autoscaler"
