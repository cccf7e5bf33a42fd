"""The webhook: it refuses in the words of `epd validate`, warns, has mercy; where it fails, the operator catches it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.chat import metric
from hack.cluster.access import Access
from hack.cluster.health import answers
from hack.cluster.kubectl import Kubectl, KubectlError, Object
from hack.cluster.ports import free_ports
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import Deployments, StartOperator, vision
from tests.integration.operator.process import OperatorProcess

pytestmark = pytest.mark.integration

WRONG: dict[str, Any] = {"encode": {"parallelism": {"tensor": 2}, "preprocessing": {"tensorIPC": "torch_shm"}}}


def configuration(namespace: str, port: int) -> Object:
    """The webhook's configuration as the chart has it, but reached by address, and for one namespace."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [
            {
                "name": "epddeployments.epd.dev",
                "clientConfig": {"url": f"https://127.0.0.1:{port}/validate"},
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "rules": [
                    {
                        "apiGroups": ["epd.dev"],
                        "apiVersions": ["v1alpha1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["epddeployments"],
                    }
                ],
                "failurePolicy": "Ignore",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 10,
            }
        ],
    }


@pytest.fixture
def webhook(
    cluster: Access, kubectl: Kubectl, namespace: str, start_operator: StartOperator, tmp_path: Path
) -> Iterator[OperatorProcess]:
    """A webhook whose certificate an operator's leader made."""
    with free_ports() as ports:
        port, health = ports.scheduler, ports.controller_manager  # any free ones
    kubectl.apply([configuration(namespace, port)])
    secret = f"--webhook-secret={namespace[:40]}"
    own = _in_namespace(cluster, namespace, tmp_path)
    start_operator(f"--webhook-configuration={namespace}", secret, "--webhook-name=127.0.0.1", f"--kubeconfig={own}")
    options = (f"--port={port}", f"--health-port={health}", f"--secret={namespace[:40]}")
    with OperatorProcess(own, tmp_path / "webhook.log", "webhook", *options) as process:
        process.health = f"http://127.0.0.1:{health}"
        eventually("the webhook is trusted", lambda: _trusted(kubectl, namespace), seconds=60)
        eventually("it answers", lambda: _refuses(kubectl, namespace), seconds=60)
        yield process
    kubectl("delete", "validatingwebhookconfiguration", namespace, "--ignore-not-found")


def _in_namespace(cluster: Access, namespace: str, tmp_path: Path) -> Path:
    """A kubeconfig whose context has the test's namespace, as an operator in a pod has its own."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    for context in config["contexts"]:
        context["context"]["namespace"] = namespace
    path = tmp_path / "own.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def _trusted(kubectl: Kubectl, name: str) -> bool:
    found = kubectl.json("get", "validatingwebhookconfiguration", name)
    return bool(found["webhooks"][0]["clientConfig"].get("caBundle"))


def _refuses(kubectl: Kubectl, namespace: str) -> bool:
    body = json.dumps(vision("probe", operatorClass="nobody", **WRONG))
    done = kubectl("create", "--dry-run=server", "-n", namespace, "-f", "-", stdin=body, check=False)
    return bool(done.returncode)


def validate(body: Object) -> list[str]:
    """What `epd validate` prints of errors."""
    done = subprocess.run(
        [sys.executable, "-c", "from epd_operator.cli.main import main; main()", "validate", "-o", "json", "-"],
        input=json.dumps(body),
        capture_output=True,
        text=True,
        check=False,
    )
    findings = json.loads(done.stdout)
    return [f["message"] for f in findings if f["severity"] == "error"]


@pytest.mark.usefixtures("webhook")
def test_it_refuses_in_the_words_of_validate_warns_and_ratchets(
    kubectl: Kubectl, namespace: str, epd: Deployments
) -> None:
    wrong = vision("vllm-server", operatorClass="nobody", **WRONG)
    messages = validate(wrong)
    assert len(messages) == 2
    with pytest.raises(KubectlError) as refused:
        epd.apply(wrong)
    for message in messages:
        assert message in str(refused.value)
    warned = kubectl(
        "create",
        "--dry-run=server",
        "-n",
        namespace,
        "-f",
        "-",
        stdin=json.dumps(vision("warned", transfer={"embeddings": {"volume": None}}, operatorClass="nobody")),
    )
    assert warned.returncode == 0
    epd.apply(vision("right", operatorClass="nobody"))


def test_what_passed_while_it_was_away_is_caught_and_may_be_changed(
    webhook: OperatorProcess, kubectl: Kubectl, namespace: str, epd: Deployments
) -> None:
    webhook.kill()
    epd.apply(vision(operatorClass=namespace, **WRONG))  # failurePolicy Ignore
    condition = epd.wait("Accepted", "False", reason="Invalid")
    assert "[torch-shm-single-rank]" in condition["message"]
    assert not epd.children("deployments")
    webhook.start()
    eventually("it answers again", lambda: _refuses(kubectl, namespace), seconds=60)
    epd.patch({"decode": {"replicas": 3}})  # what was wrong before is no reason to refuse
    with pytest.raises(KubectlError, match="torch-shm-single-rank"):
        epd.patch({"encode": {"parallelism": {"tensor": 4}}})
    kubectl("label", "epd/vision", "-n", namespace, "a=b")
    kubectl("delete", "epd/vision", "-n", namespace, "--timeout=30s")


def test_its_probes_answer_and_it_counts(webhook: OperatorProcess, kubectl: Kubectl, namespace: str) -> None:
    refused = metric(webhook.health, "epd_operator_admissions_total", verdict="refused")
    assert _refuses(kubectl, namespace)
    assert metric(webhook.health, "epd_operator_admissions_total", verdict="refused") == refused + 1
    assert all(answers(f"{webhook.health}/{path}") for path in ("healthz", "readyz"))


@pytest.mark.usefixtures("webhook")
def test_the_certificate_is_kept(kubectl: Kubectl, namespace: str) -> None:
    before = kubectl.json("get", f"secret/{namespace[:40]}", "-n", namespace)["data"]["tls.crt"]
    kubectl("delete", f"secret/{namespace[:40]}", "-n", namespace)

    def anew() -> bool:
        found = kubectl("get", f"secret/{namespace[:40]}", "-n", namespace, "--output=json", check=False)
        return found.returncode == 0 and json.loads(found.stdout)["data"]["tls.crt"] != before

    eventually("a new certificate", anew, seconds=90)
    eventually("it is used", lambda: _refuses(kubectl, namespace), seconds=90)
