"""The chart on a real API server: it installs, upgrades, rolls back and goes; its rights are those that are used."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hack.cluster.access import Access
from hack.cluster.audit import AuditLog
from hack.cluster.errors import ClusterError
from hack.cluster.kubectl import Kubectl, Object
from hack.cluster.testkubelet import KubeletThread
from hack.demo_cluster.helm import CHART, Release
from tests.integration.chart import Grant, documents, granted, of_kind, rendered
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import Deployments, vision
from tests.integration.operator.process import OperatorProcess

pytestmark = pytest.mark.integration

APPLIED = (
    "services.",
    "deployments.apps",
    "cronjobs.batch",
    "networkpolicies.networking.k8s.io",
    "poddisruptionbudgets.policy",
    "rolebindings.rbac.authorization.k8s.io",
)
NOT_SEEN_HERE = {
    **{f"create {kind}": "asked by the API server when an apply creates; it logs the apply only" for kind in APPLIED},
    "update epddeployments/finalizers.epd.dev": "asked by OwnerReferencesPermissionEnforcement, which is off here",
    "bind clusterroles.rbac.authorization.k8s.io": "asked by the API server when a RoleBinding is applied",
    "patch secrets.": "the renewal of the webhook's certificate, a month before its end",
}
"""Granted rights that no request of the test's run shows, and why they are there."""


@pytest.fixture
def release(kubectl: Kubectl, namespace: str, kubelet: KubeletThread) -> Iterator[Release]:
    """A release that concerns this test's namespace only, where pods are restricted; the test kubelet runs them."""
    kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    release = Release(kubectl, namespace)
    yield release
    kubectl("delete", "validatingwebhookconfiguration", f"epd-operator.{namespace}", "--ignore-not-found")
    for kind in ("clusterrole", "clusterrolebinding"):
        kubectl(
            "delete", kind, f"--selector=app.kubernetes.io/name=epd-operator,app.kubernetes.io/instance={release.name}"
        )


def values(namespace: str, **more: object) -> dict[str, object]:
    """Values that keep the webhook away from other tests' namespaces."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return {"webhook.namespaceSelector": selector, "operatorClass": "chart", **more}


def install(release: Release, **more: object) -> str:
    """Install; the CRDs were there before, applied by kubectl."""
    return release.install(values(release.namespace, **more), "--take-ownership", "--force-conflicts")


def older(directory: Path) -> Path:
    """A chart as the previous version might be: other arguments, a CRD without one of its columns."""
    chart = directory / "epd-operator"
    shutil.copytree(CHART, chart)
    (chart / "Chart.yaml").write_text((CHART / "Chart.yaml").read_text().replace("version: 0.1.0", "version: 0.0.9", 1))
    crd = chart / "files" / "crds" / "epddeployments.epd.dev.yaml"
    body = yaml.safe_load(crd.read_text())
    body["spec"]["versions"][0]["additionalPrinterColumns"].pop(0)
    crd.write_text(yaml.safe_dump(body))
    deployment = chart / "templates" / "operator-deployment.yaml"
    deployment.write_text(deployment.read_text().replace("--workers={{ $values.workers }}", "--workers=3"))
    return chart


def columns(kubectl: Kubectl) -> int:
    crd = kubectl.json("get", "crd", "epddeployments.epd.dev")
    return len(crd["spec"]["versions"][0]["additionalPrinterColumns"])


def workers(kubectl: Kubectl, namespace: str) -> str:
    pod = kubectl.json("get", "deployment/epd-operator", "-n", namespace)["spec"]["template"]["spec"]
    arguments: list[str] = pod["containers"][0]["args"]
    return next(word for word in arguments if word.startswith("--workers="))


def test_install_upgrade_rollback_uninstall(kubectl: Kubectl, release: Release, tmp_path: Path) -> None:
    namespace = release.namespace
    before, now = Release(kubectl, namespace, chart=older(tmp_path)), columns(kubectl)
    install(before)
    assert (columns(kubectl), workers(kubectl, namespace)) == (now - 1, "--workers=3")
    kubectl.apply([vision(operatorClass="chart")], namespace)
    uid = kubectl.json("get", "epd/vision", "-n", namespace)["metadata"]["uid"]

    said = install(release, **{"operator.workers": 5})
    assert "kubectl get epddeployments --watch" in said
    assert (columns(kubectl), workers(kubectl, namespace)) == (now, "--workers=5")

    release.rollback()
    assert (columns(kubectl), workers(kubectl, namespace)) == (now - 1, "--workers=3")
    release.rollback(2)
    assert columns(kubectl) == now
    assert [entry["status"] for entry in release.history()] == [*["superseded"] * 3, "deployed"]

    release.uninstall()
    assert kubectl.json("get", "epd/vision", "-n", namespace)["metadata"]["uid"] == uid
    left = leftovers(kubectl, namespace)
    assert left == {"CustomResourceDefinition/epddeployments.epd.dev", "CustomResourceDefinition/epdrolescales.epd.dev"}


def leftovers(kubectl: Kubectl, namespace: str) -> set[str]:
    """What has the release's labels, of all kinds that the chart knows."""
    kinds = {(body["kind"], body["apiVersion"]) for body in rendered()} | {("Pod", "v1"), ("ReplicaSet", "apps/v1")}
    labels = "--selector=app.kubernetes.io/name=epd-operator,app.kubernetes.io/instance=epd-operator"
    found = set()
    for kind, version in sorted(kinds):
        group, _, _ = version.rpartition("/")
        name = f"{kind}.{version.rpartition('/')[2]}.{group}" if group else kind
        for body in kubectl.items("get", name, "--all-namespaces", labels):
            if body["metadata"].get("namespace", namespace) == namespace:
                found.add(f"{kind}/{body['metadata']['name']}")
    return {name for name in found if not name.startswith(("Pod/", "ReplicaSet/"))}


@pytest.fixture
def as_operator(
    api_requests: AuditLog, release: Release, cluster: Access, tmp_path: Path
) -> Iterator[tuple[Kubectl, OperatorProcess]]:
    """The operator's program, with the rights that the chart gives it, and the arguments too."""
    namespace, kubectl = release.namespace, cluster.kubectl
    install(release)
    kubeconfig = impersonated(kubectl, namespace, "epd-operator", tmp_path)
    deployment = kubectl.json("get", "deployment/epd-operator", "-n", namespace)
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    local = [word for word in arguments if not word.startswith(("--address", "--port"))]
    with OperatorProcess(kubeconfig, tmp_path / "operator.log", *local, "--port=0") as process:
        process.wait_for("the cluster was read")
        yield kubectl, process


def impersonated(kubectl: Kubectl, namespace: str, account: str, directory: Path) -> Path:
    """A kubeconfig of a service account, with a token as its pods get."""
    token = kubectl("create", "token", account, "-n", namespace, "--duration=1h").stdout.strip()
    file = directory / f"{account}.kubeconfig"
    config = yaml.safe_load(kubectl.kubeconfig.read_text())
    config["users"] = [{"name": account, "user": {"token": token}}]
    for context in config["contexts"]:
        context["context"] |= {"user": account, "namespace": namespace}
    file.write_text(yaml.safe_dump(config))
    return file


def exercise(kubectl: Kubectl, namespace: str) -> None:
    """Let an operator do everything that it ever does."""
    epd = Deployments(kubectl, namespace)
    where = ("-n", namespace)
    claim = {"persistentVolumeClaim": {"claimName": "embeddings"}}
    classes = {"priorityClassName": "system-cluster-critical", "runtimeClassName": "none"}
    first = vision(
        operatorClass="chart",
        encode={"scaling": {"mode": "External"}, "template": {"spec": classes}},
        transfer={"embeddings": {"connector": "ECExampleConnector", "volume": claim}},
        rollout={"historyLimit": 0},
    )
    epd.apply(first)
    eventually("the encoder's scale is there", lambda: kubectl.items("get", "epdrolescale", *where), seconds=60)
    eventually("the proxy is there", lambda: kubectl.exists("deployment/vision-proxy", *where), seconds=60)
    eventually("a status is written", lambda: epd.status().get("conditions"), seconds=60)
    # Without scale, pruner and classes; and a second revision, whose predecessor is forgotten when it is through. The
    # first never was ready, and so has no budgets to remove; the second has.
    for model in ("Qwen/Qwen3-VL-4B-Instruct", "Qwen/Qwen3-VL-2B-Instruct"):
        later: Object = {"model": {"id": model}, "rollout": {"historyLimit": 0}}
        later |= {role: {"drainTimeoutSeconds": 1} for role in ("encode", "decode")}
        epd.apply(vision(operatorClass="chart", **later))
        epd.wait("Ready")
    eventually("the scale is gone", lambda: not kubectl.items("get", "epdrolescale", *where), seconds=60)
    eventually("the pruner is gone", lambda: not kubectl.items("get", "cronjob", *where), seconds=60)
    eventually(
        "one rendering is left", lambda: len(kubectl.items("get", "controllerrevision", *where)) == 1, seconds=60
    )
    # Drift.
    for kind in ("serviceaccount", "rolebinding", "configmap", "networkpolicy"):
        kubectl("label", f"{kind}/vision-proxy", *where, "app.kubernetes.io/name=other", "--overwrite")
    label = "-o=jsonpath={.metadata.labels.app\\.kubernetes\\.io/name}"
    eventually("it is repaired", lambda: kubectl("get", "sa/vision-proxy", *where, label).stdout == "epd", seconds=60)


def used(requests: AuditLog, user: str) -> set[Grant]:
    """What a user asked for; nothing of it was refused, but in namespaces of other tests that are ending (403 too)."""
    found = [request for request in requests.requests() if request.user == user and request.resource]
    own = {"", user.split(":")[2]}
    assert not [request for request in found if request.code == 403 and request.namespace in own]
    return {(request.group, request.resource, request.verb) for request in found}


@pytest.mark.usefixtures("gpu_node")
def test_rights_are_those_that_are_used(
    as_operator: tuple[Kubectl, OperatorProcess], release: Release, api_requests: AuditLog
) -> None:
    kubectl, _ = as_operator
    exercise(kubectl, release.namespace)
    user = f"system:serviceaccount:{release.namespace}:epd-operator"
    renewal = ("coordination.k8s.io", "leases", "patch")
    eventually("the Lease is renewed", lambda: renewal in used(api_requests, user), seconds=60)
    seen = used(api_requests, user)
    given = granted(documents(release.manifest()), "epd-operator")
    assert told(seen - given) == []
    assert told(given - seen) == sorted(NOT_SEEN_HERE)


def told(grants: set[Grant]) -> list[str]:
    return sorted(f"{verb} {resource}.{group}" for group, resource, verb in grants)


def test_namespaces_are_served_by_roles_alone() -> None:
    objects = rendered('--set-json=namespaces=["a","b"]', "--set=webhook.enabled=false")
    assert not of_kind(objects, "ClusterRoleBinding")
    roles = [body["metadata"]["namespace"] for body in objects if body["kind"] == "Role"]
    assert {"a", "b"} <= set(roles)
    [deployment] = of_kind(objects, "Deployment").values()
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert [word for word in arguments if "namespace=" in word] == ["--namespace=a", "--namespace=b"]


def test_cert_manager_may_make_the_certificate() -> None:
    objects = rendered("--set=webhook.certificates.source=CertManager")
    [certificate] = of_kind(objects, "Certificate").values()
    webhook = of_kind(objects, "Deployment")["epd-operator-webhook"]["spec"]["template"]["spec"]
    assert webhook["volumes"][1]["secret"]["secretName"] == certificate["spec"]["secretName"]
    [configuration] = of_kind(objects, "ValidatingWebhookConfiguration").values()
    injected = configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
    assert injected == f"epd-system/{certificate['metadata']['name']}"
    assert not [grant for grant in granted(objects, "epd-operator") if grant[0].startswith("admissionregistration")]


def test_everything_is_labelled_and_annotated() -> None:
    objects = rendered(
        '--set-json=commonLabels={"team":"a"}',
        '--set-json=commonAnnotations={"note":"b"}',
        "--set=metrics.podMonitor.enabled=true",
    )
    for body in objects:
        name = f"{body['kind']} {body['metadata']['name']}"
        assert body["metadata"]["labels"]["team"] == "a", name
        assert body["metadata"].get("annotations", {}).get("note") == "b", name


def test_pods_take_what_is_configured() -> None:
    settings = {
        "priorityClassName": "high",
        "nodeSelector": {"a": "b"},
        "tolerations": [{"operator": "Exists"}],
        "podLabels": {"x": "y"},
        "podAnnotations": {"u": "v"},
        "env": [{"name": "N", "value": "1"}],
    }
    options = [f"--set-json={part}={json.dumps(settings)}" for part in ("operator", "webhook")]
    objects = rendered(
        *options, '--set-json=imagePullSecrets=[{"name":"pull"}]', "--set=image.registry=r.example.com/t"
    )
    for deployment in of_kind(objects, "Deployment").values():
        template = deployment["spec"]["template"]
        pod = template["spec"]
        assert (pod["priorityClassName"], pod["nodeSelector"], pod["tolerations"]) == (
            "high",
            {"a": "b"},
            [{"operator": "Exists"}],
        )
        assert (template["metadata"]["labels"]["x"], template["metadata"]["annotations"]["u"]) == ("y", "v")
        assert pod["imagePullSecrets"] == [{"name": "pull"}]
        assert pod["containers"][0]["image"] == "r.example.com/t/epd-operator:0.1.0"
        assert {"name": "N", "value": "1"} in pod["containers"][0]["env"]
        assert "--proxy-image=r.example.com/t/epd-proxy:0.1.0" in pod["containers"][0]["args"]


def test_crds_are_those_of_the_project() -> None:
    shipped = of_kind(rendered(), "CustomResourceDefinition")
    for file in sorted((CHART.parents[1] / "crds").glob("*.yaml")):
        body: Object = yaml.safe_load(file.read_text())
        assert shipped[body["metadata"]["name"]]["spec"] == body["spec"]
        assert shipped[body["metadata"]["name"]]["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert not of_kind(rendered("--set=crds.install=false"), "CustomResourceDefinition")


@pytest.mark.parametrize(
    "wrong", ["webook.replicas=1", "webhook.failurePolicy=Maybe", "image.digest=abc", "operator.workers=0"]
)
def test_wrong_values_are_refused(wrong: str, kubectl: Kubectl) -> None:
    with pytest.raises(ClusterError, match="values don't meet the specifications"):
        Release(kubectl, "default")("template", "x", CHART, f"--set={wrong}")


def test_the_chart_is_in_order(kubectl: Kubectl) -> None:
    Release(kubectl, "default")("lint", "--strict", CHART)
