"""Objects and namespaces go without the operator's help and without its noise, and come back under the same name."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.cluster.access import Access
from hack.cluster.kubectl import Kubectl
from tests.integration.operator.conftest import Deployments, StartOperator, vision
from tests.integration.operator.objects import KINDS
from tests.integration.operator.process import OperatorProcess

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("gpu_node")]

COUNT = 3


@pytest.fixture
def doomed(kubectl: Kubectl) -> Iterator[str]:
    """A namespace that the test deletes."""
    name = f"doomed-{secrets.token_hex(3)}"
    kubectl("create", "namespace", name)
    kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=30s")
    yield name
    kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


@pytest.fixture
def operator_of_doomed(cluster: Access, doomed: str, namespace: str, tmp_path: Path) -> Iterator[OperatorProcess]:
    """An operator that serves the doomed namespace and lives in another."""
    options = (f"--namespace={doomed}", f"--operator-class={doomed}", f"--lease-namespace={namespace}", "--port=0")
    with OperatorProcess(cluster.kubeconfig, tmp_path / "operator.log", "run", *options) as process:
        process.wait_for("the cluster was read")
        yield process


def filled(kubectl: Kubectl, namespace: str) -> Deployments:
    epd = Deployments(kubectl, namespace)
    kubectl.apply([vision(f"v{number}", operatorClass=namespace) for number in range(COUNT)], namespace)
    for number in range(COUNT):
        epd.wait("Ready", name=f"v{number}")
    return epd


def test_a_namespace_goes_without_the_operator(
    operator_of_doomed: OperatorProcess, doomed: str, kubectl: Kubectl
) -> None:
    filled(kubectl, doomed)
    operator_of_doomed.kill()
    kubectl("delete", "namespace", doomed, "--timeout=90s")


def test_a_namespace_goes_beside_a_running_operator(
    operator_of_doomed: OperatorProcess, doomed: str, kubectl: Kubectl
) -> None:
    filled(kubectl, doomed)
    kubectl("delete", "namespace", doomed, "--timeout=90s")
    loud = [line for line in operator_of_doomed.lines() if line["level"] in ("warning", "error")]
    assert loud == []
    kubectl("create", "namespace", doomed)  # again, under the same name
    kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={doomed}", "--timeout=30s")
    filled(kubectl, doomed)
    assert operator_of_doomed.runs


@pytest.mark.parametrize("cascade", ["background", "foreground"])
def test_an_object_comes_back_in_the_same_second(
    cascade: str, start_operator: StartOperator, kubectl: Kubectl, namespace: str, epd: Deployments
) -> None:
    """Its name is free before its children are gone, unless they are waited for."""
    operator = start_operator()
    operator.wait_for("the cluster was read")
    epd.apply(vision(operatorClass=namespace))
    epd.wait("Ready")
    old = epd.get()["metadata"]["uid"]
    kubectl("delete", "epd/vision", "-n", namespace, f"--cascade={cascade}", "--wait=true", "--timeout=60s")
    epd.apply(vision(operatorClass=namespace))
    epd.wait("Ready")
    new = epd.get()["metadata"]["uid"]
    assert new != old

    def owners() -> set[str]:
        kinds = (*KINDS, "secrets", "controllerrevisions")
        children = [child for kind in kinds for child in epd.children(kind).values()]
        return {owner["uid"] for child in children for owner in child["metadata"]["ownerReferences"]}

    assert owners() == {new}
    told = kubectl.items("get", "events", "-n", namespace, "--field-selector=reason=NameTaken")
    assert not told, json.dumps(told)
    assert not [line for line in operator.lines() if line["level"] == "error"]
