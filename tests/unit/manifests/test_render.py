import copy
import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epd_operator.api.parse import parse
from epd_operator.api.role import Role
from epd_operator.manifests import CREATED_ONCE, render
from epd_operator.plan.build import build
from tests.unit.manifests.specs import (
    CLAIM,
    HOSTILE,
    Object,
    deployment,
    deployments,
    one,
    planned,
    pod,
    rendered,
)

LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
SELECTORS = {
    "app.kubernetes.io/instance",
    "app.kubernetes.io/component",
    "epd.dev/revision",
}
STANDARD = {"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"}
ORDER = [
    "ServiceAccount",
    "RoleBinding",
    "ConfigMap",
    "NetworkPolicy",
    "Service",
    "EPDRoleScale",
    "PodDisruptionBudget",
    "Deployment",
    "CronJob",
]


def pods(objects: list[Object]) -> list[Object]:
    """Every pod template."""
    found = [item["spec"]["template"] for item in objects if item["kind"] == "Deployment"]
    return found + [i["spec"]["jobTemplate"]["spec"]["template"] for i in objects if i["kind"] == "CronJob"]


def selectors(objects: list[Object]) -> list[dict[str, str]]:
    """What selects pods of this deployment's own workloads."""
    found = [item["spec"]["selector"] for item in objects if item["kind"] == "Service"]
    of_workloads = [i for i in objects if i["kind"] in ("Deployment", "PodDisruptionBudget")]
    return found + [item["spec"]["selector"]["matchLabels"] for item in of_workloads]


@given(deployments())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_every_accepted_object_renders_legal_objects(document: Object) -> None:
    plan = planned(document)
    objects = render(plan)
    assert json.loads(json.dumps(objects)) == objects
    assert render(planned(copy.deepcopy(document))) == objects
    assert [item["kind"] for item in objects] == sorted((i["kind"] for i in objects), key=ORDER.index)
    for item in objects:
        metadata = item["metadata"]
        assert DNS_LABEL.fullmatch(metadata["name"]), metadata["name"]
        assert item["kind"] != "CronJob" or len(metadata["name"]) <= 52  # its Jobs' names are longer
        assert metadata["namespace"] == plan.namespace
        assert metadata["labels"].keys() >= STANDARD
    for labels in [i["metadata"]["labels"] for i in objects] + [p["metadata"]["labels"] for p in pods(objects)]:
        assert all(LABEL_KEY.fullmatch(key) and LABEL_VALUE.fullmatch(value) for key, value in labels.items()), labels
    for selector in selectors(objects):
        assert selector.keys() <= SELECTORS
        assert any(selector.items() <= template["metadata"]["labels"].items() for template in pods(objects))
    names = [(item["kind"], item["metadata"]["name"]) for item in objects]
    assert len(names) == len(set(names))


@given(deployments())
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_suspended_means_no_pods_and_nothing_else(document: Object) -> None:
    document["spec"]["suspend"] = True
    objects = render(planned(document))
    assert {item["spec"]["replicas"] for item in objects if item["kind"] == "Deployment"} == {0}
    document["spec"]["suspend"] = False
    awake = render(planned(document))
    for item in [*objects, *awake]:
        if item["kind"] in ("Deployment", "EPDRoleScale"):
            del item["spec"]["replicas"]
    assert objects == awake


@given(deployments(), deployments())
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_no_two_deployments_select_the_same_pods(one_document: Object, other_document: Object) -> None:
    one_objects, other_objects = render(planned(one_document)), render(planned(other_document))
    if one_document["metadata"]["name"] == other_document["metadata"]["name"]:
        return
    for template in pods(other_objects):
        assert not any(s.items() <= template["metadata"]["labels"].items() for s in selectors(one_objects))


ALL_ROLES: dict[str, Any] = {
    "encode": {},
    "prefill": {},
    "transfer": {"embeddings": {"connector": "ECExampleConnector", "volume": CLAIM}},
}


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_survive_exactly(text: str) -> None:
    overlay = {
        "metadata": {"annotations": {"a": text}},
        "spec": {"containers": [{"name": "engine", "env": [{"name": "X", "value": text}]}], "hostname": text},
    }
    variable = {"name": "Y", "value": text}
    decode = {"template": overlay, "env": [variable], "args": [f"--chat-template={text}"]}
    service = {"annotations": {"a": text}}
    objects = rendered(decode=decode, proxy={"service": service})
    template = one(objects, "Deployment", "decode")["spec"]["template"]
    engine = template["spec"]["containers"][0]
    assert template["metadata"]["annotations"]["a"] == text
    assert template["spec"]["hostname"] == text
    assert variable in engine["env"]
    assert {"name": "X", "value": text} in engine["env"]
    assert engine["args"][-1] == f"--chat-template={text}"
    assert one(objects, "Service", "proxy")["metadata"]["annotations"] == service["annotations"]


@pytest.mark.parametrize("template", range(5))
def test_every_pod_is_restricted(template: int) -> None:
    found = pods(rendered(**ALL_ROLES))[template]
    spec = found["spec"]
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "fsGroup": 1000,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert spec["enableServiceLinks"] is False
    assert not {"hostNetwork", "hostIPC", "hostPID"} & spec.keys()
    assert spec["automountServiceAccountToken"] is (spec["containers"][0]["name"] == "proxy")
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_pull_secrets_are_in_every_pod() -> None:
    engine = {"version": "0.33.0", "imagePullSecrets": [{"name": "s"}], "imagePullPolicy": "Always"}
    found = pods(rendered(**ALL_ROLES, engine=engine, proxy={"imagePullPolicy": "Always"}))
    assert [template["spec"]["imagePullSecrets"] for template in found] == [[{"name": "s"}]] * 5
    assert {template["spec"]["containers"][0]["imagePullPolicy"] for template in found} == {"Always"}


def test_only_the_deployments_own_pods_reach_the_engines() -> None:
    objects = rendered(**ALL_ROLES)
    policy = one(objects, "NetworkPolicy", "engines")["spec"]
    own = {"app.kubernetes.io/name": "epd", "app.kubernetes.io/instance": "a"}
    component = {"key": "app.kubernetes.io/component", "operator": "In"}
    roles = ["encode", "prefill", "decode"]
    assert policy["podSelector"] == {"matchLabels": own, "matchExpressions": [{**component, "values": roles}]}
    peers = {"matchLabels": own, "matchExpressions": [{**component, "values": [*roles, "proxy"]}]}
    assert policy["ingress"] == [{"from": [{"podSelector": peers}]}]
    for template in pods(objects)[:4]:
        assert own.items() <= template["metadata"]["labels"].items()
    proxy = one(objects, "NetworkPolicy", "proxy")["spec"]
    assert proxy["ingress"] == [{"ports": [{"protocol": "TCP", "port": "http"}]}]


def test_endpointslices_of_a_role_say_what_the_proxy_must_know() -> None:
    service = one(rendered(**ALL_ROLES), "Service", "prefill")
    labels = service["metadata"]["labels"]
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["ports"][0]["name"] == "http"
    assert {key: value for key, value in labels.items() if key.startswith("epd.dev/")} == {
        "epd.dev/role": "prefill",
        "epd.dev/engine-version": "0.33.0",
        "epd.dev/embeddings-connector": "ECExampleConnector",
        "epd.dev/kv-connector": "NixlConnector",
        "epd.dev/revision": planned(deployment(**ALL_ROLES)).revision,
    }


def test_an_autoscaler_gets_a_scale_seeded_with_the_count() -> None:
    parsed = parse(deployment(decode={"scaling": {"mode": "External"}}))
    assert parsed.deployment is not None
    objects = render(build(parsed.deployment, scales={Role.DECODE: 3}))
    scale = one(objects, "EPDRoleScale")
    assert scale["metadata"]["name"] == "a-decode"
    assert scale["spec"] == {"deployment": "a", "role": "decode", "replicas": 3}
    assert "epd.dev/revision" not in scale["metadata"]["labels"]
    assert scale["kind"] in CREATED_ONCE
    assert one(objects, "Deployment", "decode")["spec"]["replicas"] == 3


def test_a_suspended_scale_is_not_seeded_with_none() -> None:
    scale = one(rendered(suspend=True, decode={"scaling": {"mode": "External"}}), "EPDRoleScale")
    assert scale["spec"]["replicas"] == 1


@pytest.mark.parametrize(("size", "words"), [(None, []), ("1Gi", ["--keep-bytes", str(1 << 30)])])
def test_the_pruner_keeps_the_deployments_own_directory_small(size: str | None, words: list[str]) -> None:
    embeddings = {"connector": "ECExampleConnector", "volume": CLAIM} | ({"cacheSize": size} if size else {})
    objects = rendered(encode={}, transfer={"embeddings": embeddings})
    spec = one(objects, "CronJob")["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    container = spec["containers"][0]
    assert container["args"] == [
        "--directory",
        "/var/lib/epd/embeddings/a",
        "--older-than",
        str(48 * 3600),
        *words,
    ]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    engine = pod(objects, "encode")["containers"][0]
    assert mounted["embeddings"] in {mount["mountPath"] for mount in engine["volumeMounts"]}
    assert spec["volumes"][0]["persistentVolumeClaim"] == CLAIM["persistentVolumeClaim"]


def test_without_a_shared_directory_there_is_no_pruner() -> None:
    assert not [item for item in rendered(encode={}) if item["kind"] == "CronJob"]


def test_an_overlay_on_the_proxy_is_merged_too() -> None:
    template = {"spec": {"containers": [{"name": "proxy", "env": [{"name": "A", "value": "b"}]}]}}
    assert pod(rendered(proxy={"template": template}), "proxy")["containers"][0]["env"] == [{"name": "A", "value": "b"}]


@given(st.sampled_from(HOSTILE))
def test_objects_are_nobody_elses(text: str) -> None:
    plan = planned(deployment(decode={"template": {"metadata": {"annotations": {"a": text}}}}))
    first = render(plan)
    for item in first:
        item["metadata"].clear()
        item.get("spec", {}).clear()
    assert render(plan)[0]["metadata"]["name"] == "a-proxy"
