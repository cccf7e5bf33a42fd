"""What no shared API server can be put through: it is killed and comes back, and so do the definitions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.cluster.definitions import FILES, apply_crds
from hack.cluster.errors import MissingPrerequisite
from hack.cluster.kubectl import Kubectl, KubectlError
from hack.cluster.local import LocalCluster, temporary_control_plane
from hack.cluster.testkubelet import KubeletThread, NodeSpec
from tests.integration.conftest import GPU, absent
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import Deployments, vision
from tests.integration.operator.objects import KINDS, by_key
from tests.integration.operator.process import OperatorProcess

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def own() -> Iterator[LocalCluster]:
    """A control plane of these tests' own, with a node that has GPUs."""
    try:
        with temporary_control_plane() as cluster:
            apply_crds(cluster.kubectl)
            with KubeletThread(cluster.kubectl.kubeconfig) as kubelet:
                kubelet.add_node(NodeSpec("gpu", {GPU: 100}))
                yield cluster
    except MissingPrerequisite as missing:
        absent(str(missing))


@pytest.fixture
def operator(own: LocalCluster, tmp_path: Path) -> Iterator[OperatorProcess]:
    with OperatorProcess(own.kubectl.kubeconfig, tmp_path / "operator.log", "run", "--port=0") as process:
        process.wait_for("the cluster was read")
        yield process


@pytest.fixture
def epd(own: LocalCluster) -> Deployments:
    return Deployments(own.kubectl, "default")


def children(epd: Deployments, name: str) -> dict[tuple[str, str], object]:
    return dict(by_key([child for kind in KINDS for child in epd.children(kind, name).values()]))


def keep(process: OperatorProcess) -> None:
    """As a kubelet does with a container that ended."""
    if not process.runs:
        process.start()


def test_an_api_server_that_is_killed_and_comes_back(
    own: LocalCluster, operator: OperatorProcess, epd: Deployments
) -> None:
    epd.apply(vision("before"))
    epd.wait("Ready", name="before")
    wanted = children(epd, "before")
    for number in range(4):
        epd.apply(vision(f"during-{number}"))
    own.daemons.stop("kube-apiserver", grace=2)  # killed, since it takes longer to end
    own.start(report=lambda _: None)
    for number in range(4):
        keep(operator)
        epd.wait("Ready", name=f"during-{number}")
    decode = next(name for name in epd.children("deployments", "before") if "-decode-" in name)
    own.kubectl("delete", f"deployment/{decode}")
    eventually("what is deleted comes back", lambda: children(epd, "before") == wanted, seconds=60)
    own.kubectl("delete", "epd", "--all", "--timeout=60s")


def test_definitions_that_are_removed_and_come_back(
    own: LocalCluster, operator: OperatorProcess, epd: Deployments
) -> None:
    """All objects go with them, and their children; what is made afterwards is served as ever."""

    def nothing_left() -> bool:
        kinds = ",".join(kind for kind in KINDS if not kind.startswith("epd"))
        return not own.kubectl.items("get", kinds, "--namespace=default", "--selector=app.kubernetes.io/name=epd")

    epd.apply(vision("earlier"))
    epd.wait("Ready", name="earlier")
    own.kubectl("delete", "epd/earlier", "--timeout=60s")
    eventually("the garbage collector knows the kind: it looks for new ones every 30 s", nothing_left, seconds=90)
    epd.apply(vision())
    epd.wait("Ready")
    own.kubectl("delete", *(f"--filename={file}" for file in FILES), "--timeout=60s")
    eventually("the children are gone", nothing_left, seconds=60)
    apply_crds(own.kubectl)
    eventually("objects can be made", lambda: _applied(own.kubectl, epd))
    keep(operator)
    epd.wait("Ready")


def _applied(kubectl: Kubectl, epd: Deployments) -> bool:
    """Until discovery knows the kind again."""
    try:
        epd.apply(vision())
    except KubectlError:
        return False
    return kubectl.exists("epd/vision", "--namespace=default")
