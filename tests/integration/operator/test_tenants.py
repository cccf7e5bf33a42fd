"""Several operators in one cluster, by class and by namespace, with rights in their namespaces only."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.cluster.kubectl import Kubectl
from tests.integration.chart import rendered
from tests.integration.operator.conftest import Deployments, vision
from tests.integration.operator.identity import Identity
from tests.integration.operator.objects import KINDS
from tests.integration.operator.process import OperatorProcess

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("gpu_node")]


@pytest.fixture
def neighbour(kubectl: Kubectl) -> Iterator[str]:
    """Another tenant's namespace."""
    name = f"neighbour-{secrets.token_hex(3)}"
    kubectl("create", "namespace", name)
    kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=30s")
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


def tenant(kubectl: Kubectl, namespace: str, directory: Path) -> OperatorProcess:
    """An operator as the chart installs it for one namespace and class, in which it also lives."""
    identity = Identity(kubectl, namespace, directory, f"operator-{namespace[-6:]}")
    options = (f"--set=namespaces[0]={namespace}", f"--set=operatorClass={namespace}", "--set=webhook.enabled=false")
    objects = rendered(*options, namespace=namespace)
    assert not [o for o in objects if o["kind"] == "ClusterRoleBinding"]
    for number, role in enumerate(o for o in objects if o["kind"] == "Role"):
        identity.grant(str(number), role["rules"])
    return OperatorProcess(
        identity.kubeconfig,
        directory / f"{identity.name}.log",
        "run",
        f"--namespace={namespace}",
        f"--operator-class={namespace}",
        "--lease-name=epd-operator",
        "--port=0",
    )


def test_tenants_serve_their_own_namespaces_and_classes_alone(
    kubectl: Kubectl, namespace: str, neighbour: str, tmp_path: Path, epd: Deployments
) -> None:
    theirs = Deployments(kubectl, neighbour)
    with tenant(kubectl, namespace, tmp_path) as one, tenant(kubectl, neighbour, tmp_path) as other:
        for process in (one, other):
            process.wait_for("the cluster was read")
        for body in (vision(operatorClass=namespace), vision("elsewhere", operatorClass=neighbour), vision("nobodys")):
            body["spec"].setdefault("operatorClass", "nobody")
            epd.apply(body)
        theirs.apply(vision(operatorClass=neighbour))
        theirs.apply(vision("elsewhere", operatorClass=namespace))
        for served in (epd, theirs):
            served.wait("Ready")
            assert served.wait("DevicesAvailable", "Unknown")["reason"] == "NodesNotReadable"
        epd.patch({"encode": {"replicas": 2}})
        epd.wait("Ready")
        for left in ((epd, "elsewhere"), (epd, "nobodys"), (theirs, "elsewhere")):
            assert left[0].status(left[1]) == {}
            assert not [name for kind in KINDS for name in left[0].children(kind, left[1])]
        for process in (one, other):
            assert process.runs
            assert not [line for line in process.lines() if line["level"] == "error"]
