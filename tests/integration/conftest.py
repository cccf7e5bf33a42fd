"""A real API server for every test below this folder, and what tests do with it.

Without `EPD_TEST_KUBECONFIG` a control plane of its own is started for the test run. With it the tests use that
cluster's current context, whatever made it.
"""

import itertools
import os
import re
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from hack.cluster.access import Access, to_any, to_local
from hack.cluster.audit import AuditLog
from hack.cluster.definitions import apply_crds
from hack.cluster.errors import MissingPrerequisite
from hack.cluster.kubectl import Kubectl
from hack.cluster.local import temporary_control_plane
from hack.cluster.testkubelet import KubeletThread, NodeSpec

GPU = "nvidia.com/gpu"

AddNode = Callable[[NodeSpec], NodeSpec]


def absent(reason: str) -> NoReturn:
    """Give a test up for something that this machine lacks: a failure in CI, a skip with its reason elsewhere."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing on this machine, and CI leaves nothing out: {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Access]:
    """The cluster, with the project's CRDs."""
    if kubeconfig := os.environ.get("EPD_TEST_KUBECONFIG"):
        access = to_any(Path(kubeconfig))
        apply_crds(access.kubectl)
        yield access
        return

    def report(line: str) -> None:
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n{line}", flush=True)  # noqa: T201  a build takes minutes: say so

    logs = tmp_path_factory.mktemp("cluster-logs")
    try:
        with temporary_control_plane(audit=True, report=report, keep_logs=logs) as local:
            apply_crds(local.kubectl)
            yield to_local(local)
    except MissingPrerequisite as missing:
        absent(str(missing))


@pytest.fixture
def kubectl(cluster: Access) -> Kubectl:
    """Run kubectl as the cluster's administrator."""
    return cluster.kubectl


@pytest.fixture
def namespace(kubectl: Kubectl, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own. It is deleted afterwards, without waiting for its end."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    name = f"{words[:50].rstrip('-')}-{secrets.token_hex(3)}"
    kubectl("create", "namespace", name)
    # Pods are refused before the account that they run as by default is there.
    kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=30s")
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def api_requests(cluster: Access) -> AuditLog:
    """The requests to the API server since the test began; `restart()` begins anew."""
    if cluster.audit_log is None:
        absent("EPD_TEST_KUBECONFIG names a cluster whose audit log cannot be read here")
    return AuditLog(cluster.audit_log, cluster.kubectl)


@pytest.fixture(scope="session")
def kubelet(cluster: Access) -> Iterator[KubeletThread]:
    """A test kubelet with one node that has room for any number of pods, and no devices."""
    with KubeletThread(cluster.kubeconfig) as running:
        running.add_node(NodeSpec("plain"))
        yield running


@pytest.fixture
def add_node(kubelet: KubeletThread) -> Iterator[AddNode]:
    """Add a node for this test. Its name is made unique; it goes, with its pods, when the test ends."""
    added: list[str] = []
    numbers = itertools.count()

    def add(spec: NodeSpec) -> NodeSpec:
        unique = NodeSpec(
            f"{spec.name}-{secrets.token_hex(2)}-{next(numbers)}", spec.resources, spec.labels, spec.taints
        )
        kubelet.add_node(unique)
        added.append(unique.name)
        return unique

    yield add
    for name in added:
        kubelet.remove_node(name)


@pytest.fixture
def gpu_node(add_node: AddNode) -> NodeSpec:
    """A node with 1000 GPUs of a common product."""
    return add_node(NodeSpec("gpu", {GPU: 1000}, {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}))
