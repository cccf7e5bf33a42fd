"""Whatever the API server does, the operator comes to the same objects, and leaves none behind."""

import json
import threading
import time
from collections.abc import Iterator

import pytest

from epd_operator.api.parse import parse
from epd_operator.manifests.render import render
from epd_operator.plan.build import build
from hack.cluster.kubectl import Kubectl, Object
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import Deployments, StartOperator, vision
from tests.integration.operator.faulty import Fault, FaultyServer
from tests.integration.operator.identity import Identity
from tests.integration.operator.objects import KINDS, by_key, json_documents
from tests.integration.operator.process import OperatorProcess

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("gpu_node")]

READS = frozenset({"GET"})
ALL = frozenset({"GET", "POST", "PATCH", "DELETE"})
CHANGED = {"encode": {"replicas": 2, "env": [{"name": "SOME_SETTING", "value": "1"}]}, "decode": {"replicas": 2}}


@pytest.fixture
def faulty(kubectl: Kubectl) -> Iterator[FaultyServer]:
    with FaultyServer(kubectl) as server:
        yield server


@pytest.fixture
def account(identity: Identity, kubectl: Kubectl, namespace: str, faulty: FaultyServer) -> Iterator[Identity]:
    """An account that may do everything, and reaches the API server through its faults."""
    options = ["--clusterrole=cluster-admin", f"--serviceaccount={namespace}:{identity.name}"]
    kubectl("create", "clusterrolebinding", namespace, *options)
    identity.sign_in(faulty.url)
    yield identity
    kubectl("delete", "clusterrolebinding", namespace)


@pytest.fixture
def operator_behind(start_operator: StartOperator, account: Identity) -> OperatorProcess:
    process = start_operator(f"--kubeconfig={account.kubeconfig}")
    process.wait_for("the cluster was read")
    return process


def expected(kubectl: Kubectl, body: Object, namespace: str) -> dict[tuple[str, str], Object]:
    """What the object is rendered to, with the API server's defaults."""
    deployment = parse({**body, "metadata": {**body["metadata"], "namespace": namespace}}).deployment
    assert deployment is not None
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": render(build(deployment))})
    made = kubectl("create", "--dry-run=server", "--output=json", "--filename=-", stdin=text)
    return by_key(json_documents(made.stdout))


def changed(body: Object) -> Object:
    """The object after the change."""
    return {**body, "spec": {**body["spec"], **CHANGED}}


def found(epd: Deployments) -> dict[tuple[str, str], Object]:
    return by_key([child for kind in KINDS for child in epd.children(kind).values()])


def leaves_nothing(kubectl: Kubectl, epd: Deployments) -> None:
    kubectl("delete", "epd/vision", "-n", epd.namespace, "--timeout=60s")
    kinds = ",".join((*KINDS, "pods", "secrets", "controllerrevisions", "replicasets"))
    eventually(
        "nothing is left",
        lambda: not kubectl.items("get", kinds, "-n", epd.namespace, "-l", "app.kubernetes.io/instance=vision"),
        seconds=60,
    )


FAULTS = {
    "writes break down": lambda: Fault(every=5, status=500, reason="InternalError", times=5),
    "it is not available": lambda: Fault(ALL, status=503, reason="ServiceUnavailable", times=12),
    "writes conflict": lambda: Fault(every=5, status=409, reason="Conflict", times=6),
    "it is too busy": lambda: Fault(ALL, every=3, status=429, reason="TooManyRequests", retry_after=1, times=6),
    "connections break": lambda: Fault(ALL, every=4, cut=True, times=8),
    "answers are lost": lambda: Fault(every=5, lost=True, times=5),
    "it is slow": lambda: Fault(ALL, delay=0.3, times=40),
    "watches are too old": lambda: Fault(READS, path="watch=(1|true)", status=410, reason="Expired", times=20),
    "lists fail": lambda: Fault(READS, path="limit=", every=2, status=500, reason="InternalError", times=8),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_it_comes_to_the_same_objects(  # noqa: PLR0917  pytest passes them by name
    kind: str,
    faulty: FaultyServer,
    account: Identity,
    start_operator: StartOperator,
    kubectl: Kubectl,
    epd: Deployments,
) -> None:
    body = vision(operatorClass=epd.namespace)
    before, after = (expected(kubectl, each, epd.namespace) for each in (body, changed(body)))
    fault = faulty.add(FAULTS[kind]())
    operator = start_operator(f"--kubeconfig={account.kubeconfig}")
    epd.apply(body)
    epd.wait("Ready")
    assert found(epd) == before
    epd.patch(CHANGED)
    epd.wait("Ready")
    assert fault.hits > 3
    assert found(epd) == after
    assert operator.runs
    leaves_nothing(kubectl, epd)


def test_what_happened_while_it_was_cut_off_is_seen_to(
    faulty: FaultyServer, operator_behind: OperatorProcess, kubectl: Kubectl, epd: Deployments
) -> None:
    """A gap that no watch tells: children went, one was changed, and the object was."""
    body = vision(operatorClass=epd.namespace)
    wanted = expected(kubectl, changed(body), epd.namespace)
    epd.apply(body)
    epd.wait("Ready")
    faulty.go_down()
    decode = next(name for name in epd.children("deployments") if "-decode-" in name)
    kubectl("delete", f"deployment/{decode}", "service/vision-proxy", "-n", epd.namespace)
    kubectl("patch", "configmap/vision-proxy", "-n", epd.namespace, "-p", '{"data":{"proxy.yaml":"x: 1"}}')
    epd.patch(CHANGED)
    time.sleep(2)
    faulty.add(Fault(READS, path="watch=1", status=410, reason="Expired", times=8))
    faulty.come_back()
    epd.wait("Ready")
    assert found(epd) == wanted
    assert operator_behind.runs


def test_an_expired_token_is_replaced(
    faulty: FaultyServer, account: Identity, operator_behind: OperatorProcess, epd: Deployments
) -> None:
    old = json.loads(account.kubeconfig.read_text())["users"][0]["user"]["token"]
    epd.apply(vision(operatorClass=epd.namespace))
    epd.wait("Ready")
    account.sign_in(faulty.url)
    refused = faulty.add(Fault(ALL, token=old, status=401, reason="Unauthorized"))
    faulty.end_watches()
    epd.patch(CHANGED)
    epd.wait("Ready")
    assert refused.hits
    assert operator_behind.runs


def test_a_write_that_arrives_after_its_leader_was_replaced_does_not_last(
    faulty: FaultyServer, account: Identity, start_operator: StartOperator, kubectl: Kubectl, epd: Deployments
) -> None:
    """The old leader is frozen with a write under way, which arrives when the next has gone on."""
    body = vision(operatorClass=epd.namespace)
    first = start_operator(f"--kubeconfig={account.kubeconfig}")
    first.wait_for("the cluster was read")
    wanted = expected(kubectl, changed(body), epd.namespace)
    epd.apply(body)
    epd.wait("Ready")
    release = threading.Event()
    held = faulty.add(Fault(frozenset({"PATCH"}), path="/deployments/vision-encode", held=release, times=1))
    epd.patch({"encode": {"env": [{"name": "SOME_SETTING", "value": "late"}]}})
    eventually("the write is under way", lambda: held.hits)
    first.freeze()
    second = start_operator()
    eventually("the second leads", lambda: second.said("leading"), seconds=40)
    epd.patch(CHANGED)
    epd.wait("Ready")
    release.set()
    time.sleep(1)
    eventually("what arrived late is undone", lambda: found(epd) == wanted)
    epd.wait("Ready")
    first.resume()
    eventually("the first ends", lambda: not first.runs)
    assert found(epd) == wanted
