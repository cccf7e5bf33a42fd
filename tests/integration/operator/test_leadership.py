"""One operator of several leads; the next takes over when it is killed, stopped or frozen."""

import time

import pytest

from hack.cluster.kubectl import Kubectl
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import Deployments, StartOperator, vision
from tests.integration.operator.process import OperatorProcess

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("gpu_node")]

LIMIT = 20
"""Seconds that a hand-over after a kill may take: the lease's 15, a look each 2, and starting."""


def pair(start_operator: StartOperator) -> tuple[OperatorProcess, OperatorProcess]:
    first = start_operator()
    first.wait_for("leading")
    second = start_operator()
    second.wait_for("waiting for the lease")
    return first, second


def test_the_next_leads_at_once_after_a_stop(
    start_operator: StartOperator, kubectl: Kubectl, namespace: str, epd: Deployments
) -> None:
    first, second = pair(start_operator)
    epd.apply(vision(operatorClass=namespace))
    epd.wait("Ready")
    assert not second.said("leading")
    assert first.stop() == 0
    lease = kubectl.json("get", f"lease/epd-operator-{namespace}", "-n", namespace)["spec"]
    assert lease["holderIdentity"] == "" or second.said("leading")
    eventually("the second leads", lambda: second.said("leading"), seconds=8)
    epd.patch({"encode": {"replicas": 2}})
    epd.wait("Ready")


def test_the_next_leads_soon_after_a_kill(start_operator: StartOperator, namespace: str, epd: Deployments) -> None:
    first, second = pair(start_operator)
    first.kill()
    eventually("the second leads", lambda: second.said("leading"), seconds=LIMIT)
    epd.apply(vision(operatorClass=namespace))
    epd.wait("Ready")


def test_a_leader_that_was_frozen_writes_no_more(
    start_operator: StartOperator, namespace: str, epd: Deployments
) -> None:
    first, second = pair(start_operator)
    epd.apply(vision(operatorClass=namespace))
    epd.wait("Ready")
    first.freeze()
    eventually("the second leads", lambda: second.said("leading"), seconds=LIMIT)
    epd.patch({"encode": {"replicas": 2}})
    epd.wait("Ready")
    first.resume()
    eventually("the first ends", lambda: not first.runs, seconds=30)
    assert list(first.lines())[-1]["event"] == "ended"
    assert not [line for line in first.lines() if line["event"] == "applied" and line["generation"] > 1]
    assert epd.wait("Ready")


def test_killed_again_and_again_it_converges(start_operator: StartOperator, namespace: str, epd: Deployments) -> None:
    """A few real kills, with leadership on; the cut-off tests have every place."""
    operator = start_operator()
    operator.wait_for("leading")
    for number in range(3):
        epd.apply(vision(f"v{number}", operatorClass=namespace))
        time.sleep(0.1 * number)
        operator.kill()
        operator = start_operator()
        operator.wait_for("leading")
    for number in range(3):
        epd.wait("Ready", name=f"v{number}")
