"""The operator's picture of the cluster: one informer a kind, an index by object, and who is to be looked at again."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from epd_operator.api import names
from epd_operator.cluster.api import Cluster, Page
from epd_operator.cluster.informer import Informer, version_of
from epd_operator.cluster.resources import CONTROLLER_REVISIONS, NODES, PODS, Object, Resource
from epd_operator.controller.child import Child, keep_child
from epd_operator.controller.kinds import CHILDREN, EPD_DEPLOYMENTS, ROLE_SCALES
from epd_operator.controller.pods import Pod, keep_pod
from epd_operator.controller.preflight import Node, keep_node
from epd_operator.controller.rendering import Rendering, keep_rendering
from epd_operator.controller.scaling import Scale, keep_scale

Key = tuple[str, str]
MANAGED = f"{names.LABEL_MANAGED_BY}=epd-operator"
SOON, PROGRESS, NODES_CHANGED = 0.05, 0.5, 1.0
"""Seconds until an object is looked at after a change of a child, of a status, of the nodes."""


@dataclass(frozen=True, slots=True)
class Instance:
    """What is kept of an EPDDeployment."""

    uid: str
    version: int
    body: Object


def _keep_instance(body: Object, _: Instance | None) -> Instance:
    metadata = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return Instance(metadata["uid"], version_of(body), {**body, "metadata": metadata})


class World:
    """All informers of one operator. `look(key, after)` is called for each object that should be reconciled."""

    def __init__(self, cluster: Cluster, namespaces: Iterable[str], look: Callable[[Key, float], None]) -> None:
        self._look = look
        self._writing = False
        self._namespaces = tuple(namespaces)
        self._children: dict[Key, dict[Key, Child]] = {}
        self.unbegun: set[Key] = set()
        """Deployments that their controller has not seen yet, by namespace and name."""
        self._pods: dict[Key, dict[str, Pod]] = {}
        self._renderings: dict[Key, dict[str, Rendering]] = {}
        self._scales: dict[Key, dict[str, Scale]] = {}
        self.doubted: set[Key] = set()
        """Objects that lost a child: whether they are still there must be asked of the API server."""
        self._cluster = cluster
        self._scope: tuple[str | None, ...] = self._namespaces or (None,)
        self.instances = Informer(cluster, EPD_DEPLOYMENTS, _keep_instance, self._instance_changed)
        self.scales = Informer(cluster, ROLE_SCALES, lambda body, _: keep_scale(body), self._scale_changed)
        self.nodes = Informer(cluster, NODES, lambda body, _: keep_node(body), self._node_changed)
        self.children = {
            (kind, namespace): Informer(
                cluster,
                resource,
                partial(keep_child, resource),
                self._child_changed,
                namespace=namespace,
                labels=MANAGED,
            )
            for kind, resource in CHILDREN.items()
            for namespace in self._scope
        }
        self.renderings = {
            namespace: Informer(
                cluster,
                CONTROLLER_REVISIONS,
                lambda body, _: keep_rendering(body),
                self._rendering_changed,
                namespace=namespace,
                labels=MANAGED,
            )
            for namespace in self._scope
        }
        self.pods = {
            namespace: Informer(
                cluster, PODS, lambda body, _: keep_pod(body), self._pod_changed, namespace=namespace, labels=MANAGED
            )
            for namespace in self._scope
        }

    async def run(self) -> None:
        """Keep the picture, for ever. EPDDeployments and EPDRoleScales are told by whoever watches them."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers():
                group.create_task(informer.run())

    async def synced(self) -> None:
        """Wait until all was read once."""
        for informer in self._informers():
            await informer.synced.wait()

    def unread(self) -> list[str]:
        """Kinds of children that were not read yet or may not be, with the reason; nodes need not be readable."""
        informers = [informer for informer in self._informers() if informer is not self.nodes]
        told = {
            i.resource.kind: str(i.refusal or "not read yet") for i in informers if i.refusal or not i.synced.is_set()
        }
        return [f"{kind}: {why}" for kind, why in sorted(told.items())]

    async def relist(self) -> None:
        """Read EPDDeployments and EPDRoleScales, for what the watches may have missed. Raises ClusterError."""
        informers: tuple[Informer[Any], ...] = (self.instances, self.scales)
        for informer in informers:
            await informer.take_over(self._pages(informer.resource))

    async def _pages(self, resource: Resource) -> AsyncIterator[Page]:
        for namespace in self._scope:
            async for page in self._cluster.pages(resource, namespace):
                yield page

    def _informers(self) -> list[Informer[Any]]:
        return [*self.children.values(), *self.renderings.values(), *self.pods.values(), self.nodes]

    # Reading

    def instance(self, key: Key) -> Instance | None:
        """One EPDDeployment."""
        return self.instances.get(*key)

    def children_of(self, key: Key) -> dict[Key, Child]:
        """The objects that carry the name of an EPDDeployment as their instance."""
        return dict(self._children.get(key, {}))

    def pods_of(self, key: Key) -> tuple[Pod, ...]:
        """The pods of an EPDDeployment."""
        return tuple(self._pods.get(key, {}).values())

    def renderings_of(self, key: Key, uid: str) -> tuple[Rendering, ...]:
        """The renderings kept for one EPDDeployment."""
        found = self._renderings.get(key, {}).values()
        return tuple(kept for kept in found if kept.owner is not None and kept.owner.uid == uid)

    def scales_of(self, key: Key) -> dict[str, Scale]:
        """The EPDRoleScales of an EPDDeployment by role; one made by a user counts like one of the operator's."""
        return {scale.role: scale for scale in self._scales.get(key, {}).values() if not scale.deleting}

    def node_list(self) -> tuple[Node, ...] | None:
        """All nodes; None where they may not be read."""
        return tuple(self.nodes) if self.nodes.refusal is None else None

    # Writing

    @contextmanager
    def own_write(self) -> Iterator[None]:
        """What is fed inside is the operator's own doing and no reason to look again."""
        self._writing = True
        try:
            yield
        finally:
            self._writing = False

    def take_child(self, resource: Resource, body: Object) -> Child | None:
        """The answer to an own write of a child."""
        namespace = body["metadata"]["namespace"]
        informer = self.children[resource.kind, namespace if self._namespaces else None]
        with self.own_write():
            return informer.feed(body)

    def take_rendering(self, body: Object) -> Rendering | None:
        """The answer to an own write of a ControllerRevision."""
        namespace = body["metadata"]["namespace"]
        with self.own_write():
            return self.renderings[namespace if self._namespaces else None].feed(body)

    def take_instance(self, body: Object) -> None:
        """The answer to an own write of a status."""
        with self.own_write():
            self.instances.feed(body)

    def take_scale(self, body: Object) -> None:
        """The answer to an own write of an EPDRoleScale."""
        with self.own_write():
            self.scales.feed(body)

    # Changes

    def _again(self, key: Key, after: float) -> None:
        if not self._writing:
            self._look(key, after)

    def _instance_changed(self, key: Key, _: Instance | None, after: Instance | None) -> None:
        if after is None:
            self.doubted.discard(key)
        self._again(key, 0.0)

    def _scale_changed(self, key: Key, before: Scale | None, after: Scale | None) -> None:
        for scale in (before, after):
            if scale is None:
                continue
            owner = (key[0], scale.deployment)
            index = self._scales.setdefault(owner, {})
            index.pop(key[1], None)
            if after is not None and scale is after:
                index[key[1]] = after
            if not index:
                del self._scales[owner]
            self._again(owner, 0.0)

    def _child_changed(self, key: Key, before: Child | None, after: Child | None) -> None:
        child = after or before
        if child is None:
            return
        if after is not None and after.workload is not None and not after.workload.begun:
            self.unbegun.add(key)
        elif child.workload is not None:
            self.unbegun.discard(key)
        owner = (key[0], child.instance)
        index = self._children.setdefault(owner, {})
        if after is None:
            index.pop(child.key, None)
            if not index:
                del self._children[owner]
            self.doubted.add(owner)
            self._again(owner, SOON)
            return
        if before is not None and before.instance != after.instance:
            self._children.get((key[0], before.instance), {}).pop(before.key, None)
            self._again((key[0], before.instance), SOON)
        index[after.key] = after
        if before is None or not after.right_as:
            self._again(owner, SOON)
        elif before.workload != after.workload or before.deleting != after.deleting:
            self._again(owner, PROGRESS)

    def _pod_changed(self, key: Key, before: Pod | None, after: Pod | None) -> None:
        pod = after or before
        if pod is None:
            return
        owner = (key[0], pod.instance)
        index = self._pods.setdefault(owner, {})
        if after is None:
            index.pop(key[1], None)
            if not index:
                del self._pods[owner]
        else:
            index[key[1]] = after
            if before is not None and before.same_news(after):
                return
        if self.instances.get(*owner) is not None:
            self._again(owner, PROGRESS)

    def _rendering_changed(self, key: Key, before: Rendering | None, after: Rendering | None) -> None:
        kept = after or before
        if kept is None:
            return
        owner = (key[0], kept.instance)
        index = self._renderings.setdefault(owner, {})
        if after is None:
            index.pop(kept.name, None)
            if not index:
                del self._renderings[owner]
            self.doubted.add(owner)
        else:
            index[after.name] = after
        self._again(owner, SOON)

    def _node_changed(self, _: Key, before: Node | None, after: Node | None) -> None:
        if before is not None and after is not None and before.same_offer(after):
            return
        for instance in self.instances:
            metadata = instance.body["metadata"]
            self._again((metadata["namespace"], metadata["name"]), NODES_CHANGED)
