"""The test kubelet: its nodes, and one task for each pod that the scheduler bound to one of them."""

import asyncio
import itertools
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from hack.cluster.kubectl import Object
from hack.cluster.rest import ApiError, Rest
from hack.cluster.testkubelet.fate import Fate
from hack.cluster.testkubelet.node import HEARTBEAT_SECONDS, LEASES, NodeSpec, lease
from hack.cluster.testkubelet.pod import CONFLICT, NOT_FOUND, PodTask, now
from hack.cluster.testkubelet.references import COLLECTIONS, Reference

USER_AGENT = "test-kubelet"
NODES = "/api/v1/nodes"
# A private network for addresses that no one listens on; the first ones are left out as a network plugin would.
FIRST_ADDRESS = (10 << 24) + (128 << 16) + 2


@dataclass(frozen=True)
class Rule:
    """A fate for the pods of a namespace that have all of these labels."""

    namespace: str
    labels: Mapping[str, str]
    fate: Fate

    def matches(self, pod: Object) -> bool:
        """Whether the rule is about this pod."""
        meta = pod["metadata"]
        return meta["namespace"] == self.namespace and self.labels.items() <= (meta.get("labels") or {}).items()


@dataclass
class Kubelet:
    """Any number of nodes. All methods belong to the loop that runs `run`."""

    rest: Rest
    default: Fate = field(default_factory=Fate)
    _nodes: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """Each node's heartbeat."""
    _rules: list[Rule] = field(default_factory=list)
    _pods: dict[str, PodTask] = field(default_factory=dict)
    """By UID."""
    _seen: dict[str, Object] = field(default_factory=dict)
    """Every pod of the cluster by UID, since a node may be added after its pods."""
    _keys: dict[tuple[str, str, str], frozenset[str]] = field(default_factory=dict)
    """By kind, namespace and name."""
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    """What runs each of them."""
    _addresses: Iterable[int] = field(default_factory=lambda: itertools.count(FIRST_ADDRESS))

    async def run(self) -> None:
        """Watch pods, Secrets and ConfigMaps for ever."""
        async with asyncio.TaskGroup() as group:
            for kind in COLLECTIONS:
                group.create_task(self._watch_keys(kind))
            group.create_task(self._watch_pods())

    async def close(self) -> None:
        """End every task. Nodes and pods stay as they are."""
        tasks = [*self._nodes.values(), *self._tasks.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def fate(self, pod: Object) -> Fate:
        """By the pod's annotations, else by the latest rule that matches, else the default."""
        matching = (rule.fate for rule in reversed(self._rules) if rule.matches(pod))
        otherwise = next(matching, self.default)
        try:
            return Fate.of(pod["metadata"].get("annotations") or {}, otherwise)
        except ValueError as error:
            print(f"pod {pod['metadata']['name']}: its test-kubelet annotations: {error}", file=sys.stderr)
            return otherwise

    async def complaint(self, namespace: str, reference: Reference) -> str:
        """What a kubelet would say of a Secret or ConfigMap that is not there; empty if it is."""
        identity = (reference.kind, namespace, reference.name)
        found = reference.complaint(namespace, self._keys.get(identity))
        if not found:
            return ""
        # The pod may have been seen before the object that was made before it.
        return reference.complaint(namespace, await self._read_keys(*identity))

    def add_rule(self, namespace: str, labels: Mapping[str, str], fate: Fate) -> None:
        """Change what happens to pods, those that are there and those that come."""
        self._rules.append(Rule(namespace, dict(labels), fate))
        self._wake(self._pods.values())

    def clear_rules(self, namespace: str) -> None:
        """Forget the rules of a namespace: its pods recover."""
        self._rules = [rule for rule in self._rules if rule.namespace != namespace]
        self._wake(self._pods.values())

    async def add_node(self, spec: NodeSpec) -> None:
        """Register a node; one of this name that exists gets the new resources."""
        try:
            await self.rest.create(NODES, spec.object())
        except ApiError as error:
            if error.status != CONFLICT:
                raise
        await self._heartbeat(spec.name)
        await self.rest.patch(f"{NODES}/{spec.name}/status", {"status": spec.status(now())})
        if spec.name not in self._nodes:
            self._nodes[spec.name] = asyncio.create_task(self._beat(spec.name))
        for pod in list(self._seen.values()):
            self._meet(pod)

    async def set_resources(self, name: str, resources: Mapping[str, int]) -> None:
        """Change what a node offers, as when a device plugin starts or fails."""
        amounts = {resource: str(amount) for resource, amount in resources.items()}
        await self.rest.patch(f"{NODES}/{name}/status", {"status": {"capacity": amounts, "allocatable": amounts}})

    async def remove_node(self, name: str) -> None:
        """Take a node away, and its pods with it."""
        await self.rest.patch(f"{NODES}/{name}", {"spec": {"unschedulable": True}})
        for task in [task for task in self._pods.values() if task.pod["spec"]["nodeName"] == name]:
            await self._delete(task.path, {"gracePeriodSeconds": 0})
        if heartbeat := self._nodes.pop(name, None):
            heartbeat.cancel()
        await self._delete(f"{NODES}/{name}")
        await self._delete(f"{LEASES}/{name}")

    async def _delete(self, path: str, options: Object | None = None) -> None:
        try:
            await self.rest.delete(path, options)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    async def _beat(self, name: str) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            try:
                await self._heartbeat(name)
            except (ApiError, OSError, TimeoutError) as error:
                print(f"heartbeat of {name}: {error!r}; trying again", file=sys.stderr)

    async def _heartbeat(self, name: str) -> None:
        body = lease(name, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        try:
            await self.rest.patch(f"{LEASES}/{name}", body)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            await self.rest.create(LEASES, body)

    async def _watch_pods(self) -> None:
        async for event in self.rest.watch("/api/v1/pods"):
            uid = event.object["metadata"]["uid"]
            if event.type == "DELETED":
                self._seen.pop(uid, None)
                self._pods.pop(uid, None)
                if task := self._tasks.pop(uid, None):
                    task.cancel()
            else:
                self._seen[uid] = event.object
                self._meet(event.object)

    def _meet(self, pod: Object) -> None:
        """A pod was seen: tell its task, or start one if it is bound to one of the nodes."""
        uid = pod["metadata"]["uid"]
        if known := self._pods.get(uid):
            known.pod = pod
            known.changed.set()
        elif pod["spec"].get("nodeName") in self._nodes and (pod.get("status") or {}).get("phase") == "Pending":
            self._pods[uid] = PodTask(self.rest, self, pod, self._next_address())
            self._tasks[uid] = asyncio.create_task(self._pods[uid].run())
            self._tasks[uid].add_done_callback(_tell_failure)

    async def _watch_keys(self, kind: str) -> None:
        async for event in self.rest.watch(f"/api/v1/{COLLECTIONS[kind]}"):
            meta = event.object["metadata"]
            identity = (kind, meta["namespace"], meta["name"])
            if event.type == "DELETED":
                self._keys.pop(identity, None)
            else:
                self._keys[identity] = _keys(event.object)
                self._wake(
                    task
                    for task in self._pods.values()
                    if task.blocked and task.pod["metadata"]["namespace"] == meta["namespace"]
                )

    async def _read_keys(self, kind: str, namespace: str, name: str) -> Collection[str] | None:
        try:
            return _keys(await self.rest.get(f"/api/v1/namespaces/{namespace}/{COLLECTIONS[kind]}/{name}"))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            return None

    def _wake(self, tasks: Iterable[PodTask]) -> None:
        for task in tasks:
            task.changed.set()

    def _next_address(self) -> str:
        number = next(iter(self._addresses))
        return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def _keys(holder: Object) -> frozenset[str]:
    return frozenset([*(holder.get("data") or {}), *(holder.get("binaryData") or {})])


def _tell_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        print(f"the task of a pod failed: {error!r}", file=sys.stderr)
