"""What is applied becomes what `epd render` prints, stays so, changes only where it must, and goes without a trace."""

from pathlib import Path

import pytest
import yaml

from epd_operator.api.parse import parse
from epd_operator.manifests.render import render
from epd_operator.plan.build import build
from hack.cluster.kubectl import Kubectl, Object
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import EXAMPLES, Deployments, vision
from tests.integration.operator.objects import KINDS, bare, by_key, json_documents
from tests.integration.operator.process import OperatorProcess

pytestmark = pytest.mark.integration

FILES = [file for file in sorted(EXAMPLES.glob("*.yaml")) if "kind: EPDDeployment" in file.read_text(encoding="utf-8")]


def document(file: Path, namespace: str) -> Object:
    body: Object = yaml.safe_load(file.read_text(encoding="utf-8"))
    body["metadata"]["namespace"] = namespace
    return body


def rendered(body: Object) -> list[Object]:
    deployment = parse(body).deployment
    assert deployment is not None
    return render(build(deployment))


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_makes_exactly_what_render_prints(
    file: Path, kubectl: Kubectl, namespace: str, epd: Deployments
) -> None:
    body = document(file, namespace)
    name = body["metadata"]["name"]
    wanted = rendered(body)
    made = kubectl("create", "--dry-run=server", "--output=json", "--filename=-", stdin=yaml.safe_dump_all(wanted))
    expected = by_key(list(json_documents(made.stdout)))
    assert len(expected) == len(wanted)
    # Budgets come with the first instance that is ready.
    needed = {key for key in expected if key[0] != "PodDisruptionBudget"}
    kubectl("apply", f"--namespace={namespace}", f"--filename={file}")
    eventually(
        "all objects are there",
        lambda: len([o for kind in KINDS for o in epd.children(kind, name)]) >= len(needed),
        seconds=60,
    )
    found = by_key([child for kind in KINDS for child in epd.children(kind, name).values()])
    assert found == {key: expected[key] for key in needed | found.keys()}
    owners = {
        owner["uid"]
        for kind in KINDS
        for child in epd.children(kind, name).values()
        for owner in child["metadata"]["ownerReferences"]
    }
    assert owners == {epd.get(name)["metadata"]["uid"]}
    for secret in (f"{name}-uuid-key", f"{name}-engine-key"):
        assert len(kubectl.json("get", f"secret/{secret}", "-n", namespace)["data"]["key"]) > 40


@pytest.mark.usefixtures("operator", "gpu_node")
def test_kubectl_waits_shows_and_explains(kubectl: Kubectl, namespace: str, epd: Deployments) -> None:
    epd.apply(vision(encode={"replicas": 2}))
    kubectl("wait", "--for=condition=Ready", "epd/vision", "-n", namespace, "--timeout=60s")
    header, row = kubectl("get", "epd", "vision", "-n", namespace).stdout.splitlines()
    assert header.split() == ["NAME", "TOPOLOGY", "READY", "ENCODE", "PREFILL", "DECODE", "REASON", "AGE"]
    assert row.split()[:-1] == ["vision", "E+PD", "True", "2/2", "1/1", "Converged"]
    said = kubectl("explain", "epd.spec.encode").stdout
    assert "Encoders." in said
    assert "replicas\t<integer>" in said
    status = epd.status()
    assert status["currentRevision"] == status["targetRevision"]
    assert status["url"] == f"http://vision-proxy.{namespace}.svc:8000"
    assert status["roles"]["encode"]["preprocessingDevice"] == "cuda"
    assert status["defaults"] == {"embeddingsConnector": "ECCPUConnector"}


@pytest.mark.usefixtures("operator", "gpu_node")
def test_a_change_changes_only_what_it_must(kubectl: Kubectl, namespace: str, epd: Deployments) -> None:
    epd.apply(vision())
    epd.wait("Ready")
    before = {kind: epd.children(kind) for kind in KINDS}
    epd.patch({"encode": {"replicas": 3}})
    epd.wait("Ready")
    after = {kind: epd.children(kind) for kind in KINDS}
    changed = [
        name
        for kind in KINDS
        for name in before[kind].keys() | after[kind].keys()
        if bare(before[kind].get(name, {"metadata": {}, "kind": ""})) != bare(after[kind][name])
    ]
    encode = next(name for name in after["deployments"] if "-encode-" in name)
    assert changed == [encode]
    assert after["deployments"][encode]["spec"]["replicas"] == 3
    assert len(kubectl.items("get", "controllerrevisions", "-n", namespace)) == 1


@pytest.mark.usefixtures("operator", "gpu_node")
def test_a_template_change_rolls_its_role_only(epd: Deployments) -> None:
    epd.apply(vision())
    epd.wait("Ready")
    before = epd.children("deployments")
    epd.patch({"encode": {"env": [{"name": "SOME_SETTING", "value": "1"}]}})
    epd.wait("Ready")
    after = epd.children("deployments")
    assert before.keys() == after.keys()
    rolled = [name for name in after if bare(before[name]) != bare(after[name])]
    assert [name for name in rolled if "-encode-" in name] == rolled
    assert len(rolled) == 1


@pytest.mark.usefixtures("operator", "gpu_node")
def test_what_is_edited_or_deleted_by_hand_comes_back(kubectl: Kubectl, namespace: str, epd: Deployments) -> None:
    epd.apply(vision())
    epd.wait("Ready")
    before = by_key([child for kind in KINDS for child in epd.children(kind).values()])
    for kind in KINDS:
        for name in epd.children(kind):
            kubectl("delete", f"{kind}/{name}", "-n", namespace, "--wait=false")

    def restored() -> bool:
        return by_key([child for kind in KINDS for child in epd.children(kind).values()]) == before

    eventually("all deleted objects are back", restored)
    epd.wait("Ready")
    decode = next(name for name in epd.children("deployments") if "-decode-" in name)
    kubectl("scale", f"deployment/{decode}", "-n", namespace, "--replicas=5")
    kubectl("set", "image", f"deployment/{decode}", "engine=registry.test/other:1", "-n", namespace)
    kubectl("label", "service/vision-proxy", "app.kubernetes.io/component=other", "-n", namespace, "--overwrite")
    kubectl("patch", "configmap/vision-proxy", "-n", namespace, "-p", '{"data":{"proxy.yaml":"x: 1"}}')
    kubectl(
        "patch",
        "networkpolicy/vision-engines",
        "-n",
        namespace,
        "--type=json",
        '-p=[{"op":"replace","path":"/spec/ingress","value":[{}]}]',
    )
    eventually("all edits are undone", restored)
    kubectl("annotate", "service/vision-proxy", "-n", namespace, "somebody.example/own=1")
    epd.patch({"proxy": {"replicas": 2}})
    epd.wait("Ready")
    annotations = epd.children("services")["vision-proxy"]["metadata"]["annotations"]
    assert annotations == {"somebody.example/own": "1"}  # what others add stays


def test_an_object_that_breaks_rules_makes_nothing(
    operator: OperatorProcess, kubectl: Kubectl, epd: Deployments
) -> None:
    body = vision(encode={"parallelism": {"tensor": 2}, "preprocessing": {"tensorIPC": "torch_shm"}})
    epd.apply(body)
    condition = epd.wait("Accepted", "False", reason="Invalid")
    parsed = parse(body)
    assert parsed.deployment is not None
    assert "[torch-shm-single-rank]" in condition["message"]
    assert epd.condition("Stalled")["reason"] == "Invalid"
    assert epd.condition("Ready")["status"] == "False"
    assert not [name for kind in KINDS for name in epd.children(kind)]
    assert operator.runs


@pytest.mark.usefixtures("operator", "gpu_node")
def test_a_change_for_the_worse_leaves_what_runs(epd: Deployments) -> None:
    epd.apply(vision())
    epd.wait("Ready")
    before = epd.children("deployments")
    epd.patch({"encode": {"replicas": 2, "parallelism": {"tensor": 2}, "preprocessing": {"tensorIPC": "torch_shm"}}})
    epd.wait("Accepted", "False")
    assert epd.condition("Available")["status"] == "True"
    after = epd.children("deployments")
    assert {name: bare(body) for name, body in before.items()} == {name: bare(body) for name, body in after.items()}
    epd.patch({"encode": {"preprocessing": None}})
    epd.wait("Ready")


@pytest.mark.usefixtures("operator", "gpu_node")
def test_suspend_keeps_all_and_runs_nothing(kubectl: Kubectl, namespace: str, epd: Deployments) -> None:
    epd.apply(vision(encode={"replicas": 2}))
    epd.wait("Ready")
    names = {name for kind in KINDS for name in epd.children(kind)}
    epd.patch({"suspend": True})
    epd.wait("Ready", reason="Suspended")
    assert epd.condition("Available")["reason"] == "Suspended"
    assert {name for kind in KINDS for name in epd.children(kind)} == names
    eventually("no pod is left", lambda: not kubectl.items("get", "pods", "-n", namespace))
    epd.patch({"suspend": None})
    epd.wait("Ready", reason="Converged")
    assert epd.status()["roles"]["encode"]["summary"] == "2/2"


@pytest.mark.parametrize("cascade", ["background", "foreground"])
@pytest.mark.usefixtures("gpu_node")
def test_deletion_needs_no_operator_and_leaves_nothing(
    own_operator: OperatorProcess, kubectl: Kubectl, namespace: str, epd: Deployments, cascade: str
) -> None:
    epd.apply(vision(operatorClass=namespace))
    epd.wait("Ready")
    assert "finalizers" not in epd.get()["metadata"]
    own_operator.kill()
    kubectl("delete", "epd/vision", "-n", namespace, f"--cascade={cascade}", "--timeout=60s")
    kinds = ",".join((*KINDS, "pods", "secrets", "controllerrevisions", "replicasets"))
    selector = "app.kubernetes.io/instance=vision"
    eventually("nothing is left", lambda: not kubectl.items("get", kinds, "-n", namespace, "-l", selector), seconds=60)


@pytest.mark.usefixtures("operator", "gpu_node")
def test_deletion_beside_a_running_operator(kubectl: Kubectl, namespace: str, epd: Deployments) -> None:
    epd.apply(vision())
    epd.wait("Ready")
    kubectl("delete", "epd/vision", "-n", namespace, "--timeout=60s")
    epd.apply(vision())  # at once under the same name
    epd.wait("Ready")
    uid = epd.get()["metadata"]["uid"]
    owners = {
        owner["uid"]
        for kind in (*KINDS, "secrets", "controllerrevisions")
        for child in epd.children(kind).values()
        for owner in child["metadata"]["ownerReferences"]
    }
    assert owners == {uid}


@pytest.mark.usefixtures("operator")
@pytest.mark.parametrize("kind", ["serviceaccount", "configmap", "service"])
def test_a_name_that_is_taken_is_refused_not_adopted(
    kubectl: Kubectl, namespace: str, epd: Deployments, kind: str
) -> None:
    spec = {"spec": {"ports": [{"port": 80}], "selector": {"app": "other"}}} if kind == "service" else {}
    kinds = {"serviceaccount": "ServiceAccount", "configmap": "ConfigMap", "service": "Service"}
    theirs = {"apiVersion": "v1", "kind": kinds[kind], "metadata": {"name": "vision-proxy"}, **spec}
    kubectl.apply([theirs], namespace)
    before = kubectl.json("get", f"{kind}/vision-proxy", "-n", namespace)
    epd.apply(vision())
    epd.wait("Stalled", reason="NameTaken")
    assert f"{kinds[kind]} vision-proxy" in epd.condition("Ready")["message"]
    assert kubectl.json("get", f"{kind}/vision-proxy", "-n", namespace) == before
