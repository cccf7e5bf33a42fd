"""Whether the cluster has what the pods will ask for: devices on nodes, shareable volumes, classes. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epd_operator.api import names
from epd_operator.api.conditions import Reason
from epd_operator.api.quantity import Quantity
from epd_operator.cluster.informer import version_of
from epd_operator.cluster.resources import Object

_BLOCKING = ("NoSchedule", "NoExecute")
_MANY = "ReadWriteMany"
_ONE_POD = "ReadWriteOncePod"


@dataclass(frozen=True, slots=True)
class Node:
    """What is kept of a node."""

    name: str
    uid: str
    version: int
    offers: Mapping[str, int]
    """Allocatable extended resources."""
    labels: Mapping[str, str]
    taints: tuple[tuple[str, str, str], ...]
    """Key, value and effect of those that keep pods away."""
    cordoned: bool

    def same_offer(self, other: "Node") -> bool:
        """Whether nothing changed that a verdict rests on."""
        mine, theirs = ((node.uid, node.offers, node.labels, node.taints, node.cordoned) for node in (self, other))
        return mine == theirs


def keep_node(body: Object) -> Node:
    """The record of a node."""
    metadata, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
    allocatable = status.get("allocatable") or {}
    taints = spec.get("taints") or []
    return Node(
        name=metadata["name"],
        uid=metadata["uid"],
        version=version_of(body),
        offers=_extended(allocatable),
        labels=metadata.get("labels") or {},
        taints=tuple((t["key"], t.get("value", ""), t["effect"]) for t in taints if t["effect"] in _BLOCKING),
        cordoned=bool(spec.get("unschedulable")),
    )


def _extended(amounts: Mapping[str, Any]) -> dict[str, int]:
    """The extended resources among resources: those with a domain that is not Kubernetes' own."""
    return {
        name: int(Quantity(str(amount)).amount)
        for name, amount in amounts.items()
        if "/" in name and not name.startswith(("kubernetes.io/", "attachable-volumes-"))
    }


@dataclass(frozen=True, slots=True)
class Need:
    """What the pods of one workload ask for."""

    component: str
    devices: Mapping[str, int]
    """Extended resources of one pod."""
    selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, Any], ...]
    claims: tuple[str, ...]
    """PersistentVolumeClaims that it writes to."""
    readers: tuple[str, ...]
    """Those that it only reads."""
    runtime_class: str | None
    priority_class: str | None


def needs_of(objects: Iterable[Object]) -> tuple[Need, ...]:
    """What rendered workloads ask for."""
    return tuple(_need(body) for body in objects if body["kind"] == "Deployment")


def _need(body: Object) -> Need:
    pod = body["spec"]["template"]["spec"]
    devices: Counter[str] = Counter()
    for container in pod["containers"]:
        devices.update(_extended((container.get("resources") or {}).get("limits") or {}))
    claims = list(_claims(pod))
    return Need(
        component=(body["metadata"].get("labels") or {}).get(names.LABEL_COMPONENT, ""),
        devices=dict(devices),
        selector=pod.get("nodeSelector") or {},
        tolerations=tuple(pod.get("tolerations") or ()),
        claims=tuple(name for name, read_only in claims if not read_only),
        readers=tuple(name for name, read_only in claims if read_only),
        runtime_class=pod.get("runtimeClassName"),
        priority_class=pod.get("priorityClassName"),
    )


def _claims(pod: Mapping[str, Any]) -> Iterator[tuple[str, bool]]:
    mounts = [mount for container in pod["containers"] for mount in container.get("volumeMounts") or []]
    for volume in pod.get("volumes") or []:
        source = volume.get("persistentVolumeClaim")
        if source:
            own = [mount for mount in mounts if mount["name"] == volume["name"]]
            read_only = source.get("readOnly") or (own and all(mount.get("readOnly") for mount in own))
            yield source["claimName"], bool(read_only)


@dataclass(frozen=True)
class ClusterFacts:
    """What was read of the cluster for one object."""

    nodes: Sequence[Node] | None
    """None where nodes may not be read."""
    claims: Mapping[str, tuple[str, ...] | None]
    """Access modes of the claims that were looked up; None for one that does not exist."""
    missing_classes: Sequence[str] = ()
    """Classes that were looked up and do not exist, as `RuntimeClass nvidia`."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Status, reason and message of the condition DevicesAvailable."""

    status: str
    reason: Reason
    message: str


def judge(needs: Sequence[Need], counts: Mapping[str, int], facts: ClusterFacts) -> Verdict:
    """Whether the cluster has what `needs` ask for. `counts`: instances wanted of each component."""
    asking = [need for need in needs if need.devices]
    complaints = [*_classes(facts), *_volumes(needs, counts, facts)]
    if facts.nodes is not None:
        complaints += [
            (Reason.NO_NODE_OFFERS_DEVICE, sentence)
            for need in asking
            if counts.get(need.component, 1) > 0 and (sentence := _no_node(need, facts.nodes))
        ]
    if complaints:
        return Verdict("False", complaints[0][0], "; ".join(sentence for _, sentence in complaints))
    if asking and facts.nodes is None:
        return Verdict("Unknown", Reason.NODES_NOT_READABLE, "the operator may not read nodes")
    if not asking:
        return Verdict("True", Reason.NO_DEVICE_NEEDED, "no role asks for a device")
    return Verdict("True", Reason.NODES_OFFER_DEVICES, "for each role there is a node that offers its devices")


def _classes(facts: ClusterFacts) -> Iterator[tuple[Reason, str]]:
    for name in facts.missing_classes:
        yield Reason.CLASS_NOT_FOUND, f"{name} does not exist in this cluster"


def _volumes(needs: Sequence[Need], counts: Mapping[str, int], facts: ClusterFacts) -> Iterator[tuple[Reason, str]]:
    one_node = facts.nodes is not None and sum(not node.cordoned for node in facts.nodes) <= 1
    for claim, modes in facts.claims.items():
        if modes is None:
            yield Reason.VOLUME_NOT_FOUND, f"the PersistentVolumeClaim {claim} does not exist"
            continue
        users = [need for need in needs if claim in (*need.claims, *need.readers)]
        pods = sum(counts.get(need.component, 1) for need in users)
        writes = any(claim in need.claims for need in users)
        shareable = _MANY in modes or ("ReadOnlyMany" in modes and not writes)
        if pods > 1 and not shareable and (modes == (_ONE_POD,) or not one_node):
            who = ", ".join(sorted({need.component for need in users}))
            sentence = (
                f"the PersistentVolumeClaim {claim} is {' and '.join(modes) or 'of no access mode'}, and {pods} pods "
                f"({who}) mount it, which may be on different nodes: they would wait for it; use a {_MANY} claim"
            )
            yield Reason.VOLUME_NOT_SHAREABLE, sentence


def _no_node(need: Need, nodes: Sequence[Node]) -> str:
    """Why no node will do; empty if one does. Each step says how many are left."""
    asks = " and ".join(f"{count} {name}" for name, count in need.devices.items())
    labels = ", ".join(f"{key}={value}" for key, value in need.selector.items())
    offering = [node for node in nodes if all(node.offers.get(n, 0) >= count for n, count in need.devices.items())]
    labelled = [node for node in offering if need.selector.items() <= node.labels.items()]
    usable = [node for node in labelled if not node.cordoned]
    if any(not _untolerated(node, need.tolerations) for node in usable):
        return ""
    wants = f"{need.component} asks for {asks}" + (f" on a node with {labels}" if labels else "")
    if not offering:
        return f"{wants}, and none of {len(nodes)} nodes offers that"
    if not labelled:
        return f"{wants}; {len(offering)} of {len(nodes)} nodes offer the devices, none of these has the labels"
    if not usable:
        return f"{wants}; the nodes that offer that are cordoned: {_listed(node.name for node in labelled)}"
    taints = {
        f"{key}={value}:{effect}" if value else f"{key}:{effect}"
        for node in usable
        for key, value, effect in _untolerated(node, need.tolerations)
    }
    return f"{wants}; the nodes that offer that have taints which the pods do not tolerate: {_listed(sorted(taints))}"


def _untolerated(node: Node, tolerations: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, str]]:
    return [taint for taint in node.taints if not any(_tolerates(toleration, taint) for toleration in tolerations)]


def _tolerates(toleration: Mapping[str, Any], taint: tuple[str, str, str]) -> bool:
    key, value, effect = taint
    if toleration.get("effect") not in (None, "", effect):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", key)
    return toleration.get("key") == key and toleration.get("value", "") == value


def _listed(words: Iterable[str], limit: int = 5) -> str:
    found = list(words)
    return ", ".join(found[:limit]) + (f" and {len(found) - limit} more" if len(found) > limit else "")
