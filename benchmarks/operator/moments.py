"""When objects become ready and when their children change, as watches tell it."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from benchmarks.operator.subject import Subject
from hack.cluster.rest import Event, Rest

LOOK_SECONDS = 0.02


class Moments:
    """The objects of one namespace, by name. Times are of the monotonic clock."""

    def __init__(self, rest: Rest, subject: Subject, namespace: str) -> None:
        self._rest = rest
        self._subject = subject
        self._namespace = namespace
        self.objects: set[str] = set()
        self.ready: dict[str, tuple[int, float]] = {}
        """The generation for which the condition is true, and since when it is seen to be."""
        self.children: dict[str, str] = {}
        """The owner's name of each child."""
        self.changed: dict[str, float] = {}
        """The last change of a child of the object."""

    async def run(self) -> None:
        """Watch for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch(self._subject.collection, self._object))
            group.create_task(self._watch(self._subject.children, self._child))

    async def until(self, what: str, true: Callable[[], bool], seconds: float) -> None:
        """Wait for it. Raises TimeoutError, with what is missing."""
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end:
                raise TimeoutError(f"{what}: not within {seconds:g} s; ready are {len(self.ready)} objects")
            await asyncio.sleep(LOOK_SECONDS)

    async def _watch(self, path: str, told: Callable[[Event], None]) -> None:
        async for event in self._rest.watch(path.format(self._namespace)):
            told(event)

    def _object(self, event: Event) -> None:
        metadata, status = event.object["metadata"], event.object.get("status") or {}
        name = metadata["name"]
        if event.type == "DELETED":
            self.objects.discard(name)
            self.ready.pop(name, None)
            return
        self.objects.add(name)
        generation = _true_for(status, self._subject.condition, metadata["generation"])
        if generation is None:
            self.ready.pop(name, None)
        elif self.ready.get(name, (None,))[0] != generation:
            self.ready[name] = (generation, time.monotonic())

    def _child(self, event: Event) -> None:
        metadata = event.object["metadata"]
        owner = next((o["name"] for o in metadata.get("ownerReferences") or [] if o.get("controller")), "")
        if event.type == "DELETED":
            self.children.pop(metadata["name"], None)
        else:
            self.children[metadata["name"]] = owner
        self.changed[owner] = time.monotonic()


def _true_for(status: dict[str, Any], kind: str, latest: int) -> int | None:
    for condition in status.get("conditions") or []:
        if (condition["type"], condition["status"]) == (kind, "True"):
            return int(condition.get("observedGeneration") or status.get("observedGeneration") or latest)
    return None
