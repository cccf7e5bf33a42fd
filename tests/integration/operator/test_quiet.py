"""Where nothing changes, nothing is written but the Lease; and a restart only reads."""

import os
import time

import pytest

from hack.cluster.audit import WRITES, AuditLog
from hack.cluster.kubectl import Kubectl
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import Deployments, StartOperator, vision

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("gpu_node")]

COUNT = int(os.environ.get("EPD_TEST_QUIET_OBJECTS", "8"))
SECONDS = float(os.environ.get("EPD_TEST_QUIET_SECONDS", "20"))
"""Small for each run; the whole is EPD_TEST_QUIET_OBJECTS=50 EPD_TEST_QUIET_SECONDS=180."""
LEASES = "leases"


def writes(log: AuditLog, namespace: str) -> list[str]:
    """What operators wrote there, but for the Lease. The operator of all tests may have work elsewhere."""
    found = log.requests(user_agent="epd-operator", verbs=WRITES, namespace=namespace)
    return [f"{r.verb} {r.resource} {r.namespace}/{r.name} {r.code}" for r in found if r.resource != LEASES]


def test_a_quiet_operator_writes_nothing(
    api_requests: AuditLog, start_operator: StartOperator, kubectl: Kubectl, namespace: str, epd: Deployments
) -> None:
    operator = start_operator()
    operator.wait_for("leading")
    kubectl.apply([vision(f"v{number}", operatorClass=namespace) for number in range(COUNT)], namespace)
    for number in range(COUNT):
        epd.wait("Ready", name=f"v{number}")
    time.sleep(3)  # what is on its way
    made = api_requests.requests(user_agent="epd-operator", namespace=namespace)
    per_object = [r for r in made if r.resource != LEASES and r.verb in WRITES]
    assert len(per_object) <= 30 * COUNT, f"{len(per_object) / COUNT} writes an object"
    api_requests.restart()
    time.sleep(SECONDS)
    assert writes(api_requests, namespace) == []
    leases = api_requests.requests(user_agent="epd-operator", verbs=WRITES, resource=LEASES, namespace=namespace)
    assert leases
    operator.stop()
    api_requests.restart()
    again = start_operator()
    again.wait_for("the cluster was read")
    time.sleep(5)
    assert writes(api_requests, namespace) == []
    kubectl("label", "epd/v0", "-n", namespace, "a=b")  # no change of the spec
    time.sleep(2)
    assert writes(api_requests, namespace) == []
    epd.patch({"encode": {"replicas": 2}}, name="v0")
    eventually("it is awake", lambda: writes(api_requests, namespace))
