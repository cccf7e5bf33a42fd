"""The test cluster does what the other tests build on."""

import json
from collections.abc import Callable

import pytest

from hack.cluster.audit import WRITES, AuditLog
from hack.cluster.kubectl import Kubectl, KubectlError, Object
from hack.cluster.testkubelet import Fate, FateKind, KubeletThread, NodeSpec, Taint
from tests.integration.eventually import eventually

pytestmark = pytest.mark.integration

GROUP = "cluster.test.epd.dev"
APP = {"app": "a"}
WIDGETS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"widgets.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"size": {"type": "integer", "default": 1}, "max": {"type": "integer"}},
                                "x-kubernetes-validations": [
                                    {"rule": "self.size <= self.max", "message": "size is above max"}
                                ],
                            },
                            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
                        },
                    }
                },
            }
        ],
    },
}


def deployment(*, replicas: int = 1, template: Object | None = None, **container: object) -> Object:
    annotations = {"annotations": template} if template else {}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a", "labels": APP},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": APP},
            "template": {
                "metadata": {"labels": APP, **annotations},
                "spec": {"containers": [{"name": "main", "image": "registry.test/app:1", **container}]},
            },
        },
    }


@pytest.fixture
def pods(kubectl: Kubectl, namespace: str) -> Callable[[], list[Object]]:
    return lambda: kubectl.items("get", "pods", "-n", namespace, "-l", "app=a")


@pytest.fixture
def state(pods: Callable[[], list[Object]]) -> Callable[[], Object]:
    """The state of the one pod's one container."""

    def ask() -> Object:
        found: list[Object] = [
            container for pod in pods() for container in pod.get("status", {}).get("containerStatuses", [])
        ]
        return found[0] if found else {}

    return ask


def waiting(state: Object) -> Object:
    found: Object = state.get("state", {}).get("waiting", {})
    return found


def test_a_definition_validates_by_cel_and_fills_in_defaults(kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply([WIDGETS])
    kubectl("wait", "--for=condition=Established", f"crd/widgets.{GROUP}", "--timeout=30s")

    def widget(**spec: int) -> Object:
        return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec}

    eventually("the new kind is served", lambda: not kubectl("get", "widgets", "-n", namespace, check=False).returncode)
    kubectl.apply([widget(max=3)], namespace)
    assert kubectl.json("get", "widget/a", "-n", namespace)["spec"] == {"size": 1, "max": 3}
    with pytest.raises(KubectlError, match="size is above max"):
        kubectl.apply([widget(max=3, size=4)], namespace)
    kubectl("patch", "widget/a", "-n", namespace, "--subresource=status", "--type=merge", '-p={"status":{"size":1}}')
    assert kubectl.json("get", "widget/a", "-n", namespace)["status"] == {"size": 1}


def test_server_side_apply_keeps_what_others_own(kubectl: Kubectl, namespace: str) -> None:
    def config(**data: str) -> list[Object]:
        return [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}]

    kubectl.apply(config(mine="1"), namespace, manager="one")
    kubectl.apply(config(yours="2"), namespace, manager="two")
    kubectl.apply(config(ours="3"), namespace, manager="one")
    assert kubectl.json("get", "configmap/a", "-n", namespace)["data"] == {"yours": "2", "ours": "3"}


@pytest.mark.usefixtures("kubelet")
def test_a_deployment_becomes_available(kubectl: Kubectl, namespace: str, pods: Callable[[], list[Object]]) -> None:
    kubectl.apply([deployment(replicas=3)], namespace)
    kubectl("rollout", "status", "deployment/a", "-n", namespace, "--timeout=60s")
    addresses = {pod["status"]["podIP"] for pod in pods()}
    assert len(addresses) == 3
    kubectl("delete", "deployment/a", "-n", namespace, "--cascade=foreground", "--timeout=60s")
    assert pods() == []


def test_what_an_object_owns_goes_with_it(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "configmap", "owner", "-n", namespace)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    uid = kubectl.json("get", "configmap/owner", "-n", namespace)["metadata"]["uid"]
    owned = {"metadata": {"name": "owned", "ownerReferences": [{**owner, "uid": uid}]}}
    kubectl.apply([{"apiVersion": "v1", "kind": "Secret", **owned}], namespace)
    kubectl("delete", "configmap/owner", "-n", namespace)
    eventually("the owned object is gone", lambda: not kubectl.exists("secret/owned", "-n", namespace))


def test_requests_are_counted_by_who_makes_them(api_requests: AuditLog, kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "configmap", "a", "-n", namespace)
    kubectl("get", "configmap", "a", "-n", namespace)
    kubectl("delete", "configmap", "a", "-n", namespace)
    mine = {"user_agent": "kubectl", "namespace": namespace, "resource": "configmaps"}
    assert [request.verb for request in api_requests.requests(**mine) if request.name == "a"][:2] == ["create", "get"]
    assert [request.verb for request in api_requests.requests(**mine, verbs=WRITES)] == ["create", "delete"]
    assert api_requests.requests(user_agent="nobody") == []
    api_requests.restart()
    assert api_requests.requests(**mine, verbs=WRITES) == []


CRASHES = [
    pytest.param(FateKind.CRASH, "Error", 1, id="crash"),
    pytest.param(FateKind.OOM, "OOMKilled", 137, id="out-of-memory"),
]


@pytest.mark.parametrize(("kind", "why", "code"), CRASHES)
def test_a_crashing_pod_restarts_and_recovers(  # noqa: PLR0917  pytest passes them by name
    kubelet: KubeletThread,
    kubectl: Kubectl,
    namespace: str,
    state: Callable[[], Object],
    kind: FateKind,
    why: str,
    code: int,
) -> None:
    kubelet.set_fate(namespace, APP, Fate(kind, message="no space left"))
    kubectl.apply([deployment()], namespace)
    eventually("two restarts", lambda: state().get("restartCount", 0) >= 2)
    ended = eventually("its last end", lambda: state()["lastState"].get("terminated"))
    assert (ended["reason"], ended["exitCode"], ended["message"]) == (why, code, "no space left")
    eventually("BackOff is told", lambda: "BackOff" in events(kubectl, namespace))
    kubelet.clear_fates(namespace)
    kubectl("rollout", "status", "deployment/a", "-n", namespace, "--timeout=60s")
    assert state()["restartCount"] >= 2


def events(kubectl: Kubectl, namespace: str) -> dict[str, str]:
    """The messages of the latest warnings, by reason."""
    found = kubectl.items("get", "events", "-n", namespace, "--field-selector=type=Warning")
    return {event["reason"]: event["message"] for event in found}


@pytest.mark.usefixtures("kubelet")
def test_an_annotation_makes_an_image_unavailable(
    kubectl: Kubectl, namespace: str, state: Callable[[], Object]
) -> None:
    kubectl.apply([deployment(template={"test-kubelet/fate": FateKind.IMAGE})], namespace)
    eventually("the back-off", lambda: waiting(state()).get("reason") == "ImagePullBackOff")
    assert 'Back-off pulling image "registry.test/app:1"' in waiting(state())["message"]
    pod = kubectl.items("get", "pods", "-n", namespace)[0]["metadata"]["name"]
    kubectl("annotate", f"pod/{pod}", "-n", namespace, "test-kubelet/fate-")
    kubectl("wait", "--for=condition=Ready", f"pod/{pod}", "-n", namespace, "--timeout=60s")


@pytest.mark.usefixtures("kubelet")
def test_a_missing_secret_is_told_and_awaited(kubectl: Kubectl, namespace: str, state: Callable[[], Object]) -> None:
    variable = {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "key"}}}
    kubectl.apply([deployment(env=[variable])], namespace)
    eventually("the want is told", lambda: waiting(state()).get("reason") == "CreateContainerConfigError")
    assert waiting(state()).get("message") == 'secret "keys" not found'
    kubectl("create", "secret", "generic", "keys", "-n", namespace, "--from-literal=other=1")
    message = f"couldn't find key key in Secret {namespace}/keys"
    eventually("the other want is told", lambda: waiting(state()).get("message") == message)
    kubectl("patch", "secret/keys", "-n", namespace, "-p", json.dumps({"stringData": {"key": "1"}}))
    kubectl("rollout", "status", "deployment/a", "-n", namespace, "--timeout=60s")


def test_pods_wait_for_devices(
    kubelet: KubeletThread,
    add_node: Callable[[NodeSpec], NodeSpec],
    kubectl: Kubectl,
    namespace: str,
    pods: Callable[[], list[Object]],
) -> None:
    device = {"test.epd.dev/device": 1}
    node = add_node(NodeSpec("devices", {"test.epd.dev/device": 0}, {"product": "x"}, (Taint("dedicated"),)))
    wanting = deployment(resources={"limits": device})
    kubectl.apply([wanting], namespace)
    eventually(
        "why it waits",
        lambda: "Insufficient test.epd.dev/device" in events(kubectl, namespace).get("FailedScheduling", ""),
    )
    kubelet.set_resources(node.name, device)
    eventually("the taint is why", lambda: any("taint" in text for text in scheduling(pods)))
    wanting["spec"]["template"]["spec"]["tolerations"] = [{"key": "dedicated", "operator": "Exists"}]
    kubectl.apply([wanting], namespace)
    kubectl("rollout", "status", "deployment/a", "-n", namespace, "--timeout=60s")
    assert {pod["spec"]["nodeName"] for pod in pods()} == {node.name}


def scheduling(pods: Callable[[], list[Object]]) -> list[str]:
    conditions = [condition for pod in pods() for condition in pod["status"].get("conditions", [])]
    return [condition.get("message", "") for condition in conditions if condition["type"] == "PodScheduled"]
