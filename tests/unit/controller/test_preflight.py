"""What the cluster must have, and how its lack is told."""

from typing import Any

import pytest

from epd_operator.api.conditions import Reason
from epd_operator.controller.preflight import ClusterFacts, Need, judge, keep_node, needs_of

GPU = "nvidia.com/gpu"


def node(name: str = "a", count: str = "8", **spec: Any) -> Any:
    labels = spec.pop("labels", {})
    return keep_node(
        {
            "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": labels},
            "spec": spec,
            "status": {"allocatable": {GPU: count, "cpu": "4", "kubernetes.io/x": "1"}},
        }
    )


def need(component: str = "encode", **fields: Any) -> Need:
    given: dict[str, Any] = {
        "devices": {GPU: 1},
        "selector": {},
        "tolerations": (),
        "claims": (),
        "readers": (),
        "runtime_class": None,
        "priority_class": None,
    }
    return Need(component, **{**given, **fields})


TAINT = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
NODES = [
    ("one offers it", [node()], need(), None),
    ("in thousands", [node(count="1k")], need(devices={GPU: 1000}), None),
    ("none", [], need(), "encode asks for 1 nvidia.com/gpu, and none of 0 nodes offers that"),
    ("too few on each", [node(count="1"), node("b", "1")], need(devices={GPU: 2}), "none of 2 nodes offers that"),
    ("another product", [node()], need(selector={"p": "x"}), "1 of 1 nodes offer the devices, none of these has"),
    ("the product", [node(labels={"p": "x"})], need(selector={"p": "x"}), None),
    ("cordoned", [node(unschedulable=True)], need(), "the nodes that offer that are cordoned: a"),
    ("tainted", [node(taints=[TAINT])], need(), "do not tolerate: dedicated=x:NoSchedule"),
    ("a mild taint", [node(taints=[{**TAINT, "effect": "PreferNoSchedule"}])], need(), None),
    ("tolerated by key", [node(taints=[TAINT])], need(tolerations=({"key": "dedicated", "operator": "Exists"},)), None),
    ("tolerated", [node(taints=[TAINT])], need(tolerations=({"key": "dedicated", "value": "x"},)), None),
    ("all tolerated", [node(taints=[TAINT])], need(tolerations=({"operator": "Exists"},)), None),
    ("another value", [node(taints=[TAINT])], need(tolerations=({"key": "dedicated", "value": "y"},)), "dedicated=x"),
    ("another effect", [node(taints=[TAINT])], need(tolerations=({"operator": "Exists", "effect": "NoExecute"},)), "x"),
]


@pytest.mark.parametrize(("nodes", "wants", "words"), [pytest.param(*case[1:], id=case[0]) for case in NODES])
def test_devices(nodes: list[Any], wants: Need, words: str | None) -> None:
    verdict = judge([wants], {"encode": 1}, ClusterFacts(nodes, {}))
    assert (verdict.status, verdict.reason) == (
        ("True", Reason.NODES_OFFER_DEVICES) if words is None else ("False", Reason.NO_NODE_OFFERS_DEVICE)
    )
    assert words is None or words in verdict.message


def test_what_cannot_be_known_or_need_not() -> None:
    assert judge([need()], {}, ClusterFacts(None, {})).reason is Reason.NODES_NOT_READABLE
    assert judge([need(devices={})], {}, ClusterFacts(None, {})).reason is Reason.NO_DEVICE_NEEDED
    assert judge([need()], {"encode": 0}, ClusterFacts([], {})).status == "True"


TWO = [node(), node("b")]
CLAIMS = [
    ("shared", TWO, ("ReadWriteMany",), {"encode": 2}, ("c",), ()),
    ("one pod", TWO, ("ReadWriteOnce",), {"encode": 1}, ("c",), ()),
    ("one node", [node()], ("ReadWriteOnce",), {"encode": 2}, ("c",), ()),
    ("readers only", TWO, ("ReadOnlyMany",), {"encode": 2}, (), ("c",)),
    ("missing", TWO, None, {"encode": 1}, ("c",), Reason.VOLUME_NOT_FOUND),
    ("two pods, one writer's claim", TWO, ("ReadWriteOnce",), {"encode": 2}, ("c",), Reason.VOLUME_NOT_SHAREABLE),
    ("one pod's claim", [node()], ("ReadWriteOncePod",), {"encode": 2}, ("c",), Reason.VOLUME_NOT_SHAREABLE),
]


@pytest.mark.parametrize(
    ("nodes", "modes", "counts", "claims", "reason"), [pytest.param(*case[1:], id=case[0]) for case in CLAIMS]
)
def test_volumes(
    nodes: list[Any], modes: tuple[str, ...] | None, counts: dict[str, int], claims: tuple[str, ...], reason: Any
) -> None:
    readers = () if claims else ("c",)
    verdict = judge([need(claims=claims, readers=readers)], counts, ClusterFacts(nodes, {"c": modes}))
    assert (verdict.reason if verdict.status == "False" else ()) == (reason if isinstance(reason, Reason) else ())


def test_missing_classes_are_told() -> None:
    verdict = judge([need()], {}, ClusterFacts([node()], {}, ("RuntimeClass nvidia",)))
    assert (verdict.reason, verdict.message) == (
        Reason.CLASS_NOT_FOUND,
        "RuntimeClass nvidia does not exist in this cluster",
    )


def test_needs_are_read_from_the_pods() -> None:
    pod = {
        "containers": [
            {
                "resources": {"limits": {GPU: "2", "cpu": "1"}},
                "volumeMounts": [{"name": "w", "mountPath": "/w"}, {"name": "r", "mountPath": "/r", "readOnly": True}],
            }
        ],
        "volumes": [
            {"name": "w", "persistentVolumeClaim": {"claimName": "writes"}},
            {"name": "r", "persistentVolumeClaim": {"claimName": "reads"}},
            {"name": "e", "emptyDir": {}},
        ],
        "nodeSelector": {"p": "x"},
        "runtimeClassName": "nvidia",
    }
    body = {
        "kind": "Deployment",
        "metadata": {"labels": {"app.kubernetes.io/component": "encode"}},
        "spec": {"template": {"spec": pod}},
    }
    found = needs_of([body, {"kind": "Service", "metadata": {}}])
    assert found == (
        need(devices={GPU: 2}, selector={"p": "x"}, claims=("writes",), readers=("reads",), runtime_class="nvidia"),
    )
