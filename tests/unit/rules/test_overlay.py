"""Overlays on pods: what they may not change, and what cannot be merged."""

from typing import Any

import pytest

from epd_operator.api.parse import parse
from epd_operator.engine.rules import check
from epd_operator.engine.wiring import wire

CLASH, MALFORMED, VALUE = "template-clash-with-wiring", "template-malformed", "template-field-value"


def found(place: str, template: dict[str, Any], **encode: Any) -> list[tuple[str, str]]:
    """Rule and path of each finding on an object with a template in one place."""
    roles: dict[str, Any] = {"encode": {**encode}, "decode": {}, "proxy": {}}
    roles[place]["template"] = template
    spec = {"model": {"id": "org/model"}, "engine": {"version": "0.33.0"}, **roles}
    document = {"apiVersion": "epd.dev/v1alpha1", "kind": "EPDDeployment", "metadata": {"name": "a"}, "spec": spec}
    deployment = parse(document).deployment
    assert deployment is not None
    findings = [finding for finding in check(wire(deployment)) if finding.rule.startswith("template-")]
    assert all(finding.message and finding.remedy for finding in findings)
    return [(finding.rule, finding.path) for finding in findings]


def engine(**fields: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "engine", **fields}]}}


CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("encode", {"metadata": {"labels": {"app.kubernetes.io/instance": "b"}}}, CLASH, "metadata.labels"),
    ("encode", {"metadata": {"labels": {"epd.dev/x": "b"}}}, CLASH, "metadata.labels"),
    ("decode", {"metadata": {"annotations": {"epd.dev/template-hash": "b"}}}, CLASH, "metadata.annotations"),
    ("decode", {"spec": {"hostNetwork": True}}, CLASH, "spec.hostNetwork"),
    ("decode", {"spec": {"restartPolicy": "Never"}}, CLASH, "spec.restartPolicy"),
    ("decode", {"spec": {"terminationGracePeriodSeconds": 5}}, CLASH, "spec.terminationGracePeriodSeconds"),
    ("proxy", {"spec": {"serviceAccountName": "other"}}, CLASH, "spec.serviceAccountName"),
    ("encode", engine(command=["x"]), CLASH, "spec.containers[0].command"),
    ("encode", engine(args=None), CLASH, "spec.containers[0].args"),
    ("encode", engine(image="x"), CLASH, "spec.containers[0].image"),
    ("encode", engine(resources={}), CLASH, "spec.containers[0].resources"),
    ("encode", engine(env=[{"name": "VLLM_API_KEY", "value": "x"}]), CLASH, "spec.containers[0].env[0]"),
    ("encode", engine(env=[{"name": "A"}, {"name": "VLLM_PORT"}]), CLASH, "spec.containers[0].env[1]"),
    ("encode", engine(ports=[{"name": "web", "containerPort": 8000}]), CLASH, "spec.containers[0].ports[0]"),
    ("proxy", {"spec": {"containers": [{"name": "proxy", "args": []}]}}, CLASH, "spec.containers[0].args"),
    ("encode", {"spec": {"containers": None}}, MALFORMED, "spec.containers"),
    ("encode", {"spec": {"containers": {"name": "engine"}}}, MALFORMED, "spec.containers"),
    ("encode", {"spec": {"containers": [{"image": "x"}]}}, MALFORMED, "spec.containers[0]"),
    ("encode", {"spec": {"volumes": ["x"]}}, MALFORMED, "spec.volumes[0]"),
    ("encode", engine(env=None), MALFORMED, "spec.containers[0].env"),
    ("encode", engine(volumeMounts=[{"name": "x"}]), MALFORMED, "spec.containers[0].volumeMounts[0]"),
    ("encode", engine(env=[{"name": 1}]), VALUE, "spec.containers[0].env[0].name"),
    ("decode", {"spec": {"$patch": "replace"}}, MALFORMED, "spec.$patch"),
    ("decode", {"spec": {"volumes": [{"name": "x", "$patch": "delete"}]}}, MALFORMED, "spec.volumes[0].$patch"),
]


@pytest.mark.parametrize(("place", "template", "rule", "path"), CASES)
def test_a_mistake_is_told_with_its_place(place: str, template: dict[str, Any], rule: str, path: str) -> None:
    assert found(place, template) == [(rule, f"spec.{place}.template.{path}")]


ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("encode", {"metadata": {"labels": {"app.kubernetes.io/part-of": "x"}, "annotations": {"a": "b"}}}),
    ("encode", {"spec": {"serviceAccountName": "own", "nodeSelector": None, "tolerations": [{"operator": "Exists"}]}}),
    ("encode", {"spec": {"containers": [{"name": "sidecar", "image": "x", "command": ["x"], "args": []}]}}),
    ("encode", {"spec": {"initContainers": [{"name": "x", "image": "x"}], "imagePullSecrets": None}}),
    ("encode", engine(env=[{"name": "VLLM_WORKER_MULTIPROC_METHOD", "value": "spawn"}])),
    ("encode", engine(env=[{"name": "HOME", "value": "/x"}, {"name": "VLLM_SERVER_DEV_MODE", "value": "0"}])),
    ("encode", engine(ports=[{"name": "debug", "containerPort": 9000}], lifecycle=None)),
    ("proxy", {"spec": {"containers": [{"name": "proxy", "env": [{"name": "VLLM_PORT", "value": "x"}]}]}}),
]


@pytest.mark.parametrize(("place", "template"), ACCEPTED)
def test_everything_else_is_the_users(place: str, template: dict[str, Any]) -> None:
    assert found(place, template) == []
