"""The real API server, scheduler and controllers take what is rendered."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from epd_operator.api.parse import parse
from epd_operator.cli.reader import read
from epd_operator.manifests import render
from epd_operator.plan.build import build
from hack.cluster.kubectl import Kubectl, Object
from hack.cluster.testkubelet import NodeSpec
from hack.golden import EXAMPLES, GOLDEN
from tests.integration.eventually import eventually

pytestmark = pytest.mark.integration

CLUSTER_ROLE: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "epd-proxy"},
    "rules": [{"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["get", "list", "watch"]}],
}
PRODUCTS = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S")


def rendered(file: Path, namespace: str, **spec: Any) -> list[Object]:
    """The objects of an example, in a namespace."""
    document = read(str(file))[0].content
    document["metadata"]["namespace"] = namespace
    document["spec"] |= spec
    deployment = parse(document).deployment
    assert deployment is not None
    return render(build(deployment))


def volumes(objects: list[Object]) -> Iterator[Object]:
    """Every volume of every pod."""
    for item in objects:
        spec = item.get("spec", {})
        template = spec.get("jobTemplate", {}).get("spec", spec).get("template", {})
        yield from template.get("spec", {}).get("volumes", [])


def secret(name: str, namespace: str) -> Object:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"key": "0" * 64, "token": "t"}}


def claim(name: str, namespace: str) -> list[Object]:
    """A claim and the volume that it is bound to."""
    capacity = {"storage": "1Gi"}
    common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = f"{namespace}-{name}"
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume, "labels": {"test": namespace}},
            "spec": {**common, "capacity": capacity, "hostPath": {"path": "/nowhere"}},
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {**common, "volumeName": volume, "resources": {"requests": capacity}},
        },
    ]


def surroundings(objects: list[Object], namespace: str) -> list[Object]:
    """What the objects refer to and somebody else makes: claims, secrets, the chart's ClusterRole."""
    found: list[Object] = [CLUSTER_ROLE]
    claims = {v["persistentVolumeClaim"]["claimName"] for v in volumes(objects) if "persistentVolumeClaim" in v}
    for name in sorted(claims):
        found += claim(name, namespace)
    keys = {s["secret"]["name"] for v in volumes(objects) for s in v.get("projected", {}).get("sources", [])}
    keys |= {volume["secret"]["secretName"] for volume in volumes(objects) if "secret" in volume} | {"huggingface"}
    return found + [secret(name, namespace) for name in sorted(keys)]


@pytest.fixture
def restricted(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    """A namespace that takes only pods of the restricted pod security standard."""
    kubectl("label", f"namespace/{namespace}", "pod-security.kubernetes.io/enforce=restricted")
    yield namespace
    kubectl("delete", "persistentvolumes", f"--selector=test={namespace}", "--wait=false")  # the claims go later


@pytest.fixture
def gpus(add_node: Callable[[NodeSpec], NodeSpec]) -> None:
    for product in PRODUCTS:
        add_node(NodeSpec("gpu", {"nvidia.com/gpu": 100}, {"nvidia.com/gpu.product": product}))


def missing(rendered: Any, live: Any, path: str = "") -> Iterator[str]:
    """Where the API server keeps something else than what was applied."""
    if isinstance(rendered, dict) and isinstance(live, dict):
        for key, value in rendered.items():
            yield from missing(value, live.get(key), f"{path}.{key}")
    elif isinstance(rendered, list) and isinstance(live, list) and len(rendered) == len(live):
        for index, (one, other) in enumerate(zip(rendered, live, strict=True)):
            yield from missing(one, other, f"{path}[{index}]")
    elif rendered != live:
        yield f"{path}: {rendered!r} became {live!r}"


@pytest.mark.usefixtures("gpus")
@pytest.mark.parametrize("example", sorted(file.name for file in GOLDEN.glob("*.yaml")))
def test_an_example_runs_under_restricted_pod_security(kubectl: Kubectl, restricted: str, example: str) -> None:
    objects = rendered(EXAMPLES / example, restricted)
    kubectl.apply(surroundings(objects, restricted))
    kubectl.apply(objects, manager="epd-operator")
    names = [item["metadata"]["name"] for item in objects if item["kind"] == "Deployment"]
    for name in names:
        kubectl("rollout", "status", f"deployment/{name}", "-n", restricted, "--timeout=120s")
    for item in objects:
        kind, name = item["kind"], item["metadata"]["name"]
        live = kubectl.json("get", f"{kind}/{name}", "-n", restricted)
        assert list(missing(item, live)) == [], f"{kind}/{name}"


@pytest.mark.usefixtures("kubelet")
def test_applying_again_changes_nothing(kubectl: Kubectl, restricted: str) -> None:
    objects = rendered(EXAMPLES / "quickstart.yaml", restricted, decode={"scaling": {"mode": "External"}})
    kubectl.apply(surroundings(objects, restricted))
    kubectl.apply(objects, manager="epd-operator")

    def settled() -> dict[str, str]:
        kinds = ",".join(sorted({item["kind"] for item in objects}))
        found = kubectl.items("get", kinds, "-n", restricted, "-l", "app.kubernetes.io/managed-by=epd-operator")
        assert len(found) == len(objects)
        return {f"{item['kind']}/{item['metadata']['name']}": item["metadata"]["resourceVersion"] for item in found}

    for item in objects:
        if item["kind"] == "Deployment":
            kubectl("rollout", "status", f"deployment/{item['metadata']['name']}", "-n", restricted, "--timeout=60s")
    before = eventually("controllers are done", lambda: (first := settled()) == settled() and first)
    kubectl.apply(objects, manager="epd-operator")
    assert settled() == before


@pytest.mark.usefixtures("kubelet")
def test_the_pruner_runs_under_restricted_pod_security(kubectl: Kubectl, restricted: str) -> None:
    objects = rendered(EXAMPLES / "quickstart.yaml", restricted)
    kubectl.apply(surroundings(objects, restricted))
    job = next(item for item in objects if item["kind"] == "CronJob")
    kubectl.apply([job])
    kubectl("create", "job", "once", f"--from=cronjob/{job['metadata']['name']}", "-n", restricted)
    pods = eventually("its pod", lambda: kubectl.items("get", "pods", "-l", "job-name=once", "-n", restricted))
    assert pods[0]["spec"]["containers"][0]["command"] == ["python", "-m", "epd_proxy.prune"]


def test_the_proxy_may_read_endpointslices_and_nothing_else(kubectl: Kubectl, namespace: str) -> None:
    objects = rendered(EXAMPLES / "qwen3-vl.yaml", namespace)
    kubectl.apply([CLUSTER_ROLE, *(item for item in objects if item["kind"] in ("ServiceAccount", "RoleBinding"))])
    account = f"--as=system:serviceaccount:{namespace}:qwen3-vl-proxy"

    def may(verb: str, what: str, where: str) -> bool:
        return kubectl("auth", "can-i", verb, what, account, "-n", where, check=False).stdout.strip() == "yes"

    eventually("the binding is known", lambda: may("watch", "endpointslices.discovery.k8s.io", namespace))
    assert not may("update", "endpointslices.discovery.k8s.io", namespace)
    assert not may("list", "endpointslices.discovery.k8s.io", "default")
    assert not may("get", "secrets", namespace)


@pytest.mark.usefixtures("kubelet")
def test_a_sidecar_and_volumes_of_a_template_are_taken(kubectl: Kubectl, restricted: str) -> None:
    sidecar = {
        "name": "sidecar",
        "image": "sidecar:1",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
    }
    template = {
        "metadata": {"labels": {"team": "vision"}, "annotations": {"note": 'a: "b" {{ c }} $(d)'}},
        "spec": {
            "containers": [
                sidecar,
                {"name": "engine", "livenessProbe": {"exec": {"command": ["true"]}}, "env": [{"name": "A"}]},
            ],
            "volumes": [{"name": "cache", "emptyDir": {"sizeLimit": "1Gi"}}],
            "tolerations": [{"key": "x", "operator": "Exists"}],
            "securityContext": {"fsGroup": None},
        },
    }
    objects = rendered(EXAMPLES / "quickstart.yaml", restricted, encode={"template": template})
    kubectl.apply(surroundings(objects, restricted))
    kubectl.apply(objects, manager="epd-operator")
    encode = next(name for item in objects if "encode" in (name := item["metadata"]["name"]))
    kubectl("rollout", "status", f"deployment/{encode}", "-n", restricted, "--timeout=60s")
    pod = kubectl.items("get", "pods", "-n", restricted, "-l", "team=vision")[0]
    assert [container["name"] for container in pod["spec"]["containers"]] == ["engine", "sidecar"]
    assert pod["metadata"]["annotations"]["note"] == 'a: "b" {{ c }} $(d)'
    assert "fsGroup" not in pod["spec"]["securityContext"]
