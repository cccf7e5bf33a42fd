"""Ready means something: who leads knows the cluster, who stands by can take over, and who may not read says so."""

import http.client
from collections.abc import Iterator

import pytest

from hack.cluster.kubectl import Kubectl
from hack.cluster.ports import free_ports
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import Deployments, StartOperator, vision
from tests.integration.operator.identity import Identity

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("gpu_node")]


@pytest.fixture
def port() -> Iterator[int]:
    with free_ports() as ports:
        yield ports.scheduler


def ask(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError as error:
        return 0, str(error)
    finally:
        connection.close()


def test_a_leader_is_ready_and_counts_what_it_does(
    start_operator: StartOperator, namespace: str, epd: Deployments, port: int
) -> None:
    start_operator(f"--port={port}")
    eventually("it is ready", lambda: ask(port, "/readyz") == (200, "ok\n"))
    assert ask(port, "/healthz") == (200, "ok\n")
    epd.apply(vision(operatorClass=namespace))
    epd.wait("Ready")
    epd.apply(vision("vllm-wrong", operatorClass=namespace))
    epd.wait("Accepted", "False", name="vllm-wrong")
    text = ask(port, "/metrics")[1]
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(values["epd_operator_leader"]) == 1
    assert float(values['epd_operator_reconcile_seconds_count{outcome="done"}']) >= 2
    assert float(values['epd_operator_writes_total{kind="Deployment",verb="apply"}']) == 3
    assert float(values['epd_operator_findings_total{rule="name-begins-with-vllm",severity="error"}']) >= 1
    assert float(values["epd_operator_queue_depth"]) == 0


def test_who_stands_by_is_ready_as_long_as_it_can_read_the_lease(
    start_operator: StartOperator, kubectl: Kubectl, namespace: str, port: int, identity: Identity
) -> None:
    start_operator().wait_for("leading")
    identity.allow("coordination.k8s.io", "leases", "get", "create", "patch")
    second = start_operator(f"--port={port}", f"--kubeconfig={identity.kubeconfig}")
    second.wait_for("waiting for the lease")
    eventually("it stands by", lambda: ask(port, "/readyz") == (200, "ok\n"))
    assert not second.said("leading")
    identity.forbid("leases")
    eventually("it is not ready", lambda: ask(port, "/readyz")[0] == 503)
    assert "leases" in ask(port, "/readyz")[1]
    assert ask(port, "/healthz")[0] == 200


def test_a_leader_that_may_not_read_its_children_says_so(
    start_operator: StartOperator, namespace: str, port: int, identity: Identity
) -> None:
    identity.allow("coordination.k8s.io", "leases", "get", "create", "patch")
    operator = start_operator(f"--port={port}", f"--kubeconfig={identity.kubeconfig}")
    operator.wait_for("leading")

    def told() -> bool:
        status, text = ask(port, "/readyz")
        return status == 503 and "Deployment: 403 Forbidden" in text and "Pod: 403 Forbidden" in text

    eventually("it says what it may not read", told)
