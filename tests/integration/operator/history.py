"""All that happened to an object's pods and Services, in the API server's own order, and what must hold of it.

Versions of objects of one API server with one etcd are numbers of one sequence, so watches of several kinds merge.
"""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

from epd_operator.api import names
from epd_operator.cluster.client import ApiServer
from epd_operator.cluster.resources import DEPLOYMENTS, PODS, SERVICES, Object, Resource

KINDS = (PODS, SERVICES, DEPLOYMENTS)
ROLES = ("encode", "prefill", "decode")


@dataclass
class Moment:
    """What there was at one version."""

    pods: dict[str, Object] = field(default_factory=dict)
    services: dict[str, Object] = field(default_factory=dict)
    deployments: dict[str, Object] = field(default_factory=dict)

    def take(self, resource: Resource, event: str, body: Object) -> None:
        """One event of a watch."""
        found: dict[str, Object] = getattr(self, resource.plural)
        found.pop(body["metadata"]["name"], None)
        if event != "DELETED":
            found[body["metadata"]["name"]] = body

    def count(self, role: str) -> int:
        """Pods of a role that hold a device, those on their way out too."""
        return sum(_label(pod, names.LABEL_COMPONENT) == role for pod in self.pods.values())

    def ready(self, role: str, revision: str | None = None) -> int:
        """Pods of a role that serve and stay."""
        return sum(
            _label(pod, names.LABEL_COMPONENT) == role
            and revision in (None, _label(pod, names.LABEL_REVISION))
            and "deletionTimestamp" not in pod["metadata"]
            and any((c["type"], c["status"]) == ("Ready", "True") for c in pod["status"].get("conditions") or [])
            for pod in self.pods.values()
        )

    def open(self) -> set[str]:
        """Revisions that get new requests."""
        return {
            _label(service, names.LABEL_REVISION)
            for service in self.services.values()
            if _label(service, names.LABEL_COMPONENT) == "decode" and _label(service, names.LABEL_TRAFFIC) != "false"
        }

    def ended(self) -> dict[str, str]:
        """When revisions ceased to get requests."""
        return {
            _label(service, names.LABEL_REVISION): service["metadata"]["annotations"][names.ANNOTATION_TRAFFIC_ENDED]
            for service in self.services.values()
            if names.ANNOTATION_TRAFFIC_ENDED in (service["metadata"].get("annotations") or {})
        }


class History:
    """Watches a namespace while the context lasts."""

    def __init__(self, server: ApiServer, namespace: str) -> None:
        self._server = server
        self._namespace = namespace
        self._events: list[tuple[int, Resource, str, Object]] = []

    async def __aenter__(self) -> Self:
        versions = {kind: (await anext(self._server.pages(kind, self._namespace))).version for kind in KINDS}
        self._tasks = [asyncio.create_task(self._watch(kind, version)) for kind, version in versions.items()]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _watch(self, kind: Resource, version: str) -> None:
        async for event in self._server.watch(kind, version, self._namespace):
            if event.type != "BOOKMARK":
                number = int(event.object["metadata"]["resourceVersion"])
                self._events.append((number, kind, event.type, event.object))

    def moments(self) -> Iterator[tuple[Moment, str]]:
        """Each change, and what there was then; the same value changed each time."""
        now = Moment()
        for number, kind, event, body in sorted(self._events, key=lambda item: item[0]):
            now.take(kind, event, body)
            yield now, f"at {number}, {event} {kind} {body['metadata']['name']}"

    def check(self, desired: Mapping[str, int], *, surge: int, unavailable: int) -> None:
        """Bounds of all roles from the moment on in which all were ready, and what holds of traffic always."""
        begun = False
        complete: set[str] = set()
        for now, what in self.moments():
            begun = begun or all(now.ready(role) == count for role, count in desired.items())
            for role, count in desired.items():
                assert now.count(role) <= count + surge, f"{what}: {now.count(role)} {role}"
                assert not begun or now.ready(role) >= count - unavailable, f"{what}: {now.ready(role)} {role} ready"
            whole = {name for name in now.open() if all(now.ready(role, name) for role in desired)}
            assert complete & now.open() <= whole, f"{what}: it serves with a role missing"
            complete |= whole
        assert begun

    def check_drains(self, routing_seconds: int) -> None:
        """No pod of a revision that was given up left before every proxy had noticed."""
        left = 0
        for now, what in self.moments():
            for pod in now.pods.values():
                ended = now.ended().get(_label(pod, names.LABEL_REVISION))
                if ended is None or "deletionTimestamp" not in pod["metadata"]:
                    continue
                grace = timedelta(seconds=pod["metadata"]["deletionGracePeriodSeconds"])
                leaves = datetime.fromisoformat(pod["metadata"]["deletionTimestamp"]) - grace
                if leaves < datetime.fromisoformat(ended):
                    continue  # it was lowered while its revision served
                left += 1
                # Both moments are whole seconds.
                assert leaves - datetime.fromisoformat(ended) >= timedelta(seconds=routing_seconds), what
        assert left


def _label(body: Object, name: str) -> str:
    return str((body["metadata"].get("labels") or {}).get(name, ""))
