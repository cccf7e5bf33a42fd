"""The node runs pods from loaded images, and counts GPUs that it does not have."""

from collections.abc import Iterator

import pytest

from hack.cluster.images import write_image
from hack.cluster.kubectl import Kubectl, Object
from hack.cluster.programs import build
from hack.cluster.provider import Provider

pytestmark = pytest.mark.e2e

IMAGE = "localhost/epd-node-test:1"
GPU = "nvidia.com/gpu"


@pytest.fixture(scope="module", autouse=True)
def image(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> None:
    """An image whose program waits until it is told to end."""
    archive = tmp_path_factory.mktemp("image") / "image.tar"
    write_image(archive, IMAGE, {"/pause": build(node=True).pause}, ["/pause"])
    provider.load(archive)


@pytest.fixture
def no_gpus(provider: Provider) -> Iterator[None]:
    provider.set_gpus(0)
    yield
    provider.set_gpus(0)


def pod(**resources: object) -> Object:
    restricted = {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    container = {
        "name": "main",
        "image": IMAGE,
        "imagePullPolicy": "Never",
        "resources": resources,
        "securityContext": restricted,
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 5}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


def test_a_restricted_pod_runs_and_ends(kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply([pod()], namespace)
    kubectl("wait", "--for=condition=Ready", "pod/a", "-n", namespace, "--timeout=60s")
    kubectl("delete", "pod/a", "-n", namespace, "--timeout=60s")


@pytest.mark.usefixtures("no_gpus")
def test_a_pod_waits_for_a_pretended_gpu(kubectl: Kubectl, provider: Provider, namespace: str) -> None:
    kubectl.apply([pod(limits={GPU: 1})], namespace)
    kubectl("wait", "--for=condition=PodScheduled=False", "pod/a", "-n", namespace, "--timeout=60s")
    conditions = kubectl.json("get", "pod/a", "-n", namespace)["status"]["conditions"]
    assert f"Insufficient {GPU}" in conditions[0]["message"]
    provider.set_gpus(1)
    kubectl("wait", "--for=condition=Ready", "pod/a", "-n", namespace, "--timeout=60s")


def test_the_name_server_answers_through_its_service(kubectl: Kubectl) -> None:
    path = "/api/v1/namespaces/kube-system/services/kube-dns:metrics/proxy/metrics"
    assert "coredns_build_info" in kubectl("get", f"--raw={path}").stdout
