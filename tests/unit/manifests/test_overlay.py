import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_operator.api.pod import PodTemplate
from epd_operator.manifests.overlay import merged, overlaid
from tests.unit.manifests.specs import pod_keys, pod_values

Object = dict[str, Any]

TEMPLATE: Object = {
    "metadata": {"labels": {"app.kubernetes.io/instance": "a"}, "annotations": {"epd.dev/template-hash": "h"}},
    "spec": {
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "one"}],
        "nodeSelector": {"product": "x"},
        "securityContext": {"runAsUser": 1000, "fsGroup": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "engine",
                "image": "i",
                "command": ["c"],
                "args": ["a"],
                "env": [{"name": "WIRED", "value": "w"}, {"name": "HOME", "value": "/cache"}],
                "ports": [{"name": "http", "protocol": "TCP", "containerPort": 8000}],
                "resources": {"limits": {"nvidia.com/gpu": "1"}},
                "securityContext": {"capabilities": {"drop": ["ALL"]}},
                "livenessProbe": {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 15},
                "lifecycle": {"preStop": {"sleep": {"seconds": 10}}},
                "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "tmp", "mountPath": "/tmp"}],
            }
        ],
        "volumes": [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "tmp", "emptyDir": {}},
        ],
    },
}


def spec_with(overlay: Object) -> Object:
    """The pod's spec with an overlay."""
    before = copy.deepcopy(TEMPLATE)
    spec: Object = overlaid(TEMPLATE, PodTemplate.model_validate({"spec": overlay}), ["WIRED"])["spec"]
    assert before == TEMPLATE
    return spec


def engine_with(**overlay: Any) -> Object:
    """The engine's container with an overlay on it."""
    first: Object = spec_with({"containers": [{"name": "engine", **overlay}]})["containers"][0]
    return first


POD_CASES: list[tuple[str, Object, str, Any]] = [
    ("a new field", {"priorityClassName": "high"}, "priorityClassName", "high"),
    ("an object", {"nodeSelector": {"zone": "z"}}, "nodeSelector", {"product": "x", "zone": "z"}),
    ("a value", {"nodeSelector": {"product": "y"}}, "nodeSelector", {"product": "y"}),
    ("null removes", {"nodeSelector": None}, "nodeSelector", None),
    (
        "null removes a part",
        {"securityContext": {"runAsUser": None, "fsGroup": 7}},
        "securityContext",
        {"fsGroup": 7, "seccompProfile": {"type": "RuntimeDefault"}},
    ),
    ("null removes what is not there", {"affinity": {"nodeAffinity": None}}, "affinity", {}),
    (
        "tolerations are appended",
        {"tolerations": [{"key": "x", "operator": "Exists"}, {"key": "gpu", "operator": "Exists"}]},
        "tolerations",
        [{"key": "gpu", "operator": "Exists"}, {"key": "x", "operator": "Exists"}],
    ),
    (
        "pull secrets by name",
        {"imagePullSecrets": [{"name": "one"}, {"name": "two"}]},
        "imagePullSecrets",
        [{"name": "one"}, {"name": "two"}],
    ),
    (
        "a volume of another source",
        {"volumes": [{"name": "tmp", "hostPath": {"path": "/fast"}}]},
        "volumes",
        [TEMPLATE["spec"]["volumes"][0], {"name": "tmp", "hostPath": {"path": "/fast"}}],
    ),
    (
        "a volume of the same source",
        {"volumes": [{"name": "shm", "emptyDir": {"sizeLimit": "8Gi"}}, {"name": "new", "emptyDir": {}}]},
        "volumes",
        [
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}},
            TEMPLATE["spec"]["volumes"][1],
            {"name": "new", "emptyDir": {}},
        ],
    ),
    ("an init container", {"initContainers": [{"name": "i", "tty": None}]}, "initContainers", [{"name": "i"}]),
    ("any other list is replaced", {"hostAliases": [{"ip": "1.1.1.1"}]}, "hostAliases", [{"ip": "1.1.1.1"}]),
]


@pytest.mark.parametrize(("overlay", "field", "expected"), [pytest.param(*c[1:], id=c[0]) for c in POD_CASES])
def test_pods_merge(overlay: Object, field: str, expected: Any) -> None:
    assert spec_with(overlay).get(field) == expected


CONTAINER_CASES: list[tuple[str, str, Any, Any]] = [
    (
        "env by name, the whole item",
        "env",
        [{"name": "HOME", "valueFrom": {"fieldRef": {"fieldPath": "f"}}}, {"name": "NEW"}],
        [
            {"name": "WIRED", "value": "w"},
            {"name": "HOME", "valueFrom": {"fieldRef": {"fieldPath": "f"}}},
            {"name": "NEW"},
        ],
    ),
    (
        "mounts by path",
        "volumeMounts",
        [{"name": "fast", "mountPath": "/tmp"}, {"name": "x", "mountPath": "/x"}],
        [
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "fast", "mountPath": "/tmp"},
            {"name": "x", "mountPath": "/x"},
        ],
    ),
    (
        "capabilities grow",
        "securityContext",
        {"capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]}, "runAsUser": 2},
        {"capabilities": {"add": ["IPC_LOCK"], "drop": ["ALL"]}, "runAsUser": 2},
    ),
    (
        "another probe replaces the probe",
        "livenessProbe",
        {"exec": {"command": ["true"]}},
        {"exec": {"command": ["true"]}, "periodSeconds": 15},
    ),
    (
        "the same probe with other times",
        "livenessProbe",
        {"periodSeconds": 60},
        {"httpGet": {"path": "/health", "port": "http"}, "periodSeconds": 60},
    ),
    (
        "another hook replaces the hook",
        "lifecycle",
        {"preStop": {"exec": {"command": ["sleep", "5"]}}},
        {"preStop": {"exec": {"command": ["sleep", "5"]}}},
    ),
    (
        "a port more",
        "ports",
        [{"name": "debug", "containerPort": 9000}, {"name": "u", "containerPort": 9000, "protocol": "UDP"}],
        [
            {"name": "http", "protocol": "TCP", "containerPort": 8000},
            {"name": "debug", "containerPort": 9000},
            {"name": "u", "containerPort": 9000, "protocol": "UDP"},
        ],
    ),
]


@pytest.mark.parametrize(("field", "overlay", "expected"), [pytest.param(*c[1:], id=c[0]) for c in CONTAINER_CASES])
def test_the_engines_container_merges(field: str, overlay: Any, expected: Any) -> None:
    assert engine_with(**{field: overlay})[field] == expected


def test_a_sidecar_comes_after_the_engine_and_may_have_a_command() -> None:
    sidecar = {"name": "sidecar", "image": "s", "command": ["x"], "env": [{"name": "WIRED", "value": "own"}]}
    assert spec_with({"containers": [sidecar]})["containers"] == [TEMPLATE["spec"]["containers"][0], sidecar]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("command", ["x"]),
        ("command", None),
        ("args", []),
        ("image", "other"),
        ("imagePullPolicy", "Never"),
        ("resources", {"limits": {"nvidia.com/gpu": "8"}}),
        ("env", [{"name": "WIRED", "value": "x"}]),
        ("env", None),
        ("env", "x"),
        ("ports", [{"name": "web", "containerPort": 8000}]),
    ],
)
def test_what_the_engine_needs_stays(field: str, value: Any) -> None:
    assert engine_with(**{field: value}) == TEMPLATE["spec"]["containers"][0]


@pytest.mark.parametrize(
    "overlay",
    [
        {"restartPolicy": "Never"},
        {"hostNetwork": True},
        {"enableServiceLinks": True},
        {"terminationGracePeriodSeconds": 1},
        {"containers": None},
        {"containers": "x"},
        {"containers": {"name": "engine"}},
    ],
)
def test_what_the_pod_needs_stays(overlay: Object) -> None:
    assert spec_with(overlay) == TEMPLATE["spec"]


@pytest.mark.parametrize("item", ["x", 1, None, [], {}, {"name": None}, {"name": ["engine"]}])
def test_items_without_a_name_are_appended_for_the_api_server_to_refuse(item: Any) -> None:
    containers = spec_with({"containers": [item]})["containers"]
    assert containers[0] == TEMPLATE["spec"]["containers"][0]
    assert len(containers) == 2


def test_labels_and_annotations_are_added_but_not_the_operators_own() -> None:
    metadata = {
        "labels": {"app.kubernetes.io/instance": "b", "app.kubernetes.io/part-of": "p", "epd.dev/revision": "r"},
        "annotations": {"epd.dev/template-hash": "x", "a": "b"},
    }
    found = overlaid(TEMPLATE, PodTemplate.model_validate({"metadata": metadata}))["metadata"]
    assert found == {
        "labels": {"app.kubernetes.io/instance": "a", "app.kubernetes.io/part-of": "p"},
        "annotations": {"epd.dev/template-hash": "h", "a": "b"},
    }


@given(pod_values, pod_values)
def test_any_two_values_merge_and_stay_as_they_were(base: Any, patch: Any) -> None:
    before = copy.deepcopy((base, patch))
    merged(base, patch)
    assert (base, patch) == before


@pytest.mark.parametrize("overlay", [pytest.param(case[1], id=case[0]) for case in POD_CASES])
def test_merging_twice_is_merging_once(overlay: Object) -> None:
    once = merged(TEMPLATE["spec"], overlay)
    assert merged(once, overlay) == once


@given(st.dictionaries(pod_keys, pod_values), st.dictionaries(pod_keys, pod_values))
def test_no_overlay_changes_the_engines_command(pod: Object, container: Object) -> None:
    own = {**container, "name": "engine"}
    engine = spec_with({**pod, "containers": [own]})["containers"][0]
    kept = ("name", "image", "command", "args", "resources")
    assert {key: engine[key] for key in kept} == {key: TEMPLATE["spec"]["containers"][0][key] for key in kept}
    assert engine["env"][0] == {"name": "WIRED", "value": "w"}
    assert engine["ports"][0]["name"] == "http"
