"""What admission plugins refuse, of the operator or of the controllers behind it, is told in their words."""

from collections.abc import Callable
from typing import Any

import pytest

from hack.cluster.kubectl import Kubectl, KubectlError, Object
from tests.integration.eventually import eventually
from tests.integration.operator.conftest import Deployments, StartOperator, vision

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("gpu_node")]


def quota(namespace: str, **hard: str) -> list[Object]:
    limits = {name.replace("_", "/"): amount for name, amount in hard.items()}
    metadata = {"name": "little", "namespace": namespace}
    return [{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": limits}}]


def limit_range(namespace: str) -> list[Object]:
    limit = {"type": "Container", "max": {"memory": "1Mi"}}
    metadata = {"name": "tiny", "namespace": namespace}
    return [{"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [limit]}}]


def pod_security(namespace: str) -> list[Object]:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}]


def policy(namespace: str) -> list[Object]:
    group = "admissionregistration.k8s.io"
    rule = {
        "apiGroups": ["apps"],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["deployments"],
    }
    spec: Object = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "on Fridays nothing is deployed"}],
    }
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {"policyName": namespace, "validationActions": ["Deny"], "matchResources": here}
    return [
        {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": namespace}, "spec": content}
        for kind, content in (("ValidatingAdmissionPolicy", spec), ("ValidatingAdmissionPolicyBinding", binding))
    ]


CASES: dict[str, tuple[Callable[[str], list[Object]], str, dict[str, Any]]] = {
    "quota of services": (lambda namespace: quota(namespace, count_services="0"), "exceeded quota: little", {}),
    "quota of devices": (
        lambda namespace: quota(namespace, **{"requests.nvidia.com_gpu": "0"}),
        "exceeded quota: little",
        {},
    ),
    "limit range": (limit_range, "maximum memory usage per Container is 1Mi", {}),
    "pod security": (
        pod_security,
        'violates PodSecurity "baseline:latest": hostPath volumes',
        {"model": {"id": "./tiny", "volume": {"hostPath": {"path": "/models"}}}},
    ),
    "admission policy": (policy, "on Fridays nothing is deployed", {}),
}


def lift(kubectl: Kubectl, objects: list[Object]) -> None:
    """Take back what refuses."""
    for body in objects:
        kind, metadata = body["kind"].lower(), body["metadata"]
        if kind == "namespace":
            kubectl("label", "namespace", metadata["name"], "pod-security.kubernetes.io/enforce-")
        else:
            where = [f"--namespace={metadata['namespace']}"] if "namespace" in metadata else []
            kubectl("delete", f"{kind}/{metadata['name']}", *where)


def refuses(kubectl: Kubectl, namespace: str, words: str) -> bool:
    """Whether a Deployment is refused so; a policy holds a moment after it was made."""
    try:
        kubectl("create", "deployment", "probe", "--image=probe", "--dry-run=server", f"--namespace={namespace}")
    except KubectlError as error:
        return words in str(error)
    return False


@pytest.mark.parametrize("case", CASES)
def test_a_refusal_is_told(
    case: str, start_operator: StartOperator, kubectl: Kubectl, namespace: str, epd: Deployments
) -> None:
    make, words, spec = CASES[case]
    objects = make(namespace)
    operator = start_operator()
    operator.wait_for("the cluster was read")
    kubectl.apply(objects)
    if case == "admission policy":
        eventually("the API server heeds the policy", lambda: refuses(kubectl, namespace, words))
    try:
        epd.apply(vision(operatorClass=namespace, **spec))
        condition = epd.wait("Ready", "False", reason="APIRefused")
        assert words in condition["message"]
    finally:
        lift(kubectl, objects)
    assert operator.runs
