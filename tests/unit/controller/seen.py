"""Observations for tests: an object, and a world in which what was decided was done."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from epd_operator.cluster.api import FIELD_MANAGER
from epd_operator.cluster.resources import Object
from epd_operator.controller.accept import Acceptance, accept
from epd_operator.controller.actions import Action, Apply, Confirm, Create, Keep, MakeSecret, Remove
from epd_operator.controller.child import Child, keep_child
from epd_operator.controller.decide import Decision, decide
from epd_operator.controller.kinds import CHILDREN
from epd_operator.controller.observed import Observed
from epd_operator.controller.pods import Pod
from epd_operator.controller.preflight import ClusterFacts, Node, needs_of
from epd_operator.controller.rendering import Rendering, keep_rendering
from epd_operator.controller.revisions import Target
from epd_operator.controller.scaling import Scale, keep_scale
from epd_operator.plan.settings import DEFAULT_SETTINGS

NODE = Node("node", "n", 1, {"nvidia.com/gpu": 8}, {}, (), cordoned=False)
LONGER = {"engine": {"version": "0.33.0", "args": ["--max-model-len=4096"]}}
"""A change of the spec that all roles must agree on."""


def instance(name: str = "v", generation: int = 1, annotations: Mapping[str, str] | None = None, **spec: Any) -> Object:
    """An object as the API server has it."""
    return {
        "apiVersion": "epd.dev/v1alpha1",
        "kind": "EPDDeployment",
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": "uid",
            "generation": generation,
            "resourceVersion": "1",
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "model": {"id": "a/b"},
            "engine": {"version": "0.33.0"},
            "encode": {"replicas": 1},
            "decode": {"replicas": 2},
            **spec,
        },
    }


class Small:
    """A world of one object: what is decided is done, and Deployments become ready when told."""

    def __init__(self, body: Object) -> None:
        self.body = body
        self.children: dict[tuple[str, str], Child] = {}
        self.bodies: dict[tuple[str, str], Object] = {}
        self.renderings: list[Rendering] = []
        self.scales: dict[str, Scale] = {}
        self.secrets: set[str] = set()
        self.pods: list[Pod] = []
        self.facts = ClusterFacts((NODE,), {})
        self.log: list[str] = []
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.calm = True

    def verdict(self) -> Acceptance:
        return accept(self.body, self.renderings, DEFAULT_SETTINGS)

    def observed(self) -> Observed:
        return Observed(
            self.body,
            dict(self.children),
            tuple(self.renderings),
            dict(self.scales),
            tuple(self.pods),
            self.facts,
            self.now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            self.calm,
        )

    def target(self, verdict: Acceptance) -> Target | None:
        content = verdict.content or (verdict.kept.content() if verdict.kept else None)
        return None if content is None else Target(content.facts, content.pieces(), needs_of(content.objects))

    def decide(self) -> Decision:
        verdict = self.verdict()
        return decide(self.observed(), verdict, self.target(verdict))

    def step(self) -> list[str]:
        """Decide and do. Returns what was written."""
        decision = self.decide()
        written = [text for action in decision.actions if (text := self.do(action))]
        self.log += written
        return written

    def settle(self, limit: int = 60) -> None:
        """Go on until nothing is written and nothing waited for, with every Deployment ready."""
        for _ in range(limit):
            self.make_ready()
            if not self.step() and not self.sleep():
                return
        raise AssertionError(f"it does not settle: {self.log[-20:]}")

    def sleep(self) -> bool:
        """Let the time pass that the decision waits for, if it does."""
        now = self.decide().transition
        waits = now is not None and now.look_seconds is not None
        if now is not None and now.look_seconds is not None:
            self.now += timedelta(seconds=now.look_seconds)
        return waits

    def do(self, action: Action) -> str:
        match action:
            case Confirm():
                action.child.is_right(action.digest)
                return ""
            case Keep():
                body = {**action.body, "metadata": {**action.body["metadata"], "uid": action.body["metadata"]["name"]}}
                self.renderings.append(keep_rendering(body))
                return f"keep {action.body['revision']}"
            case MakeSecret():
                self.secrets.add(action.body["metadata"]["name"])
                return f"secret {action.body['metadata']['name']}"
            case Create():
                metadata = {**action.body["metadata"], "uid": "scale", "generation": 1}
                scale = keep_scale({**action.body, "metadata": metadata})
                self.scales[scale.role] = scale
                return f"create {action.body['kind']} {action.body['metadata']['name']}"
            case Apply():
                self.put(action.body).is_right(action.digest)
                return f"apply {action.body['kind']} {action.body['metadata']['name']}"
            case Remove():
                self.children.pop((action.resource.kind, action.name), None)
                self.renderings = [kept for kept in self.renderings if kept.name != action.name]
                self.scales = {role: scale for role, scale in self.scales.items() if scale.name != action.name}
                return f"remove {action.resource.kind} {action.name}"

    def put(self, body: Object, *, owner: str = "uid") -> Child:
        """A child as the API server would have it after an application."""
        key = (body["kind"], body["metadata"]["name"])
        before = self.children.get(key)
        generation = before.generation + 1 if before else 1
        metadata = {
            **body["metadata"],
            "uid": f"uid-{body['metadata']['name']}",
            "generation": generation,
            "resourceVersion": str(generation),
            "managedFields": [{"manager": FIELD_MANAGER, "fieldsV1": _fields(body)}],
        }
        self.bodies[key] = {**body, "metadata": metadata}
        child = keep_child(CHILDREN[body["kind"]], self.bodies[key], None)
        if before is not None and before.workload is not None and child.workload is not None:
            old = before.workload
            child.workload = replace(
                child.workload,
                current=True,
                total=old.total,
                updated=old.updated,
                ready=old.ready,
                available=old.available,
            )
        self.children[key] = child
        return child

    def make_ready(self, components: Iterable[str] | None = None) -> None:
        """Every Deployment, or those of some components, has what it asks for."""
        for child in self.children.values():
            if child.workload is None:
                continue
            if components is None or child.labels["app.kubernetes.io/component"] in components:
                count = child.workload.wanted
                child.workload = replace(
                    child.workload, current=True, total=count, updated=count, ready=count, available=count
                )

    def names(self, kind: str) -> list[str]:
        return sorted(name for each, name in self.children if each == kind)

    def replicas(self) -> dict[str, int]:
        return {child.name: child.workload.wanted for child in self.children.values() if child.workload}


def _fields(body: Object) -> Any:
    """Every field of an object as owned: of its metadata each, of the rest the whole."""
    metadata: Object = {
        f"f:{key}": {f"f:{name}": {} for name in body["metadata"][key]}
        for key in ("labels", "annotations")
        if key in body["metadata"]
    }
    metadata["f:ownerReferences"] = {}
    rest: Object = {f"f:{key}": {} for key in body if key not in ("apiVersion", "kind", "metadata")}
    return {"f:metadata": metadata, **rest}


def settled(**spec: Any) -> Small:
    """A world whose object is ready."""
    small = Small(instance(**spec))
    small.settle()
    small.log.clear()
    return small


def changed(small: Small, **spec: Any) -> None:
    """Its user changes the spec."""
    small.body = copy.deepcopy(small.body)
    small.body["spec"] |= spec
    small.body["metadata"]["generation"] += 1


def revision(small: Small) -> str:
    """The latest that was accepted."""
    return str(small.observed().renderings[-1].revision)
