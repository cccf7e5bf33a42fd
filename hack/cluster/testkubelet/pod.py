"""One pod's life: it goes its steps, writes each, and ends when it is deleted."""

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol
from uuid import uuid4

from hack.cluster.kubectl import Object
from hack.cluster.rest import RETRY_SECONDS, STRATEGIC, ApiError, Rest
from hack.cluster.testkubelet import words
from hack.cluster.testkubelet.fate import RUNNING, Fate, Step, following, seconds
from hack.cluster.testkubelet.podstatus import Progress, status, subject
from hack.cluster.testkubelet.references import Reference, references

FORBIDDEN, NOT_FOUND, CONFLICT = 403, 404, 409


class Surroundings(Protocol):
    """What a pod's task needs to know of the kubelet."""

    def fate(self, pod: Object) -> Fate:
        """What shall happen to the pod, now."""

    async def complaint(self, namespace: str, reference: Reference) -> str:
        """Why a Secret or ConfigMap is not as the pod needs it; empty if it is."""


def now() -> str:
    """The time, as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class PodTask:
    """The pod as last seen, and how far it is. `changed` is set whenever either may have to move."""

    rest: Rest
    surroundings: Surroundings
    pod: Object
    ip: str
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    _sent: tuple[Step, int, str] | None = None
    _entered: float = 0
    """When the present step began, on the loop's clock."""

    @property
    def blocked(self) -> bool:
        """Whether it waits for a Secret or ConfigMap."""
        return bool(self._progress.complaint)

    @property
    def path(self) -> str:
        """Its path in the API."""
        meta = self.pod["metadata"]
        return f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"

    def __post_init__(self) -> None:
        self._progress = Progress(started_at=now(), ip=self.ip)

    async def run(self) -> None:
        """Live until the pod is gone."""
        while True:
            self.changed.clear()
            if self.pod["metadata"].get("deletionTimestamp"):
                await self._end()
                return
            try:
                due = await self._advance()
            except ApiError as error:
                if error.status == NOT_FOUND:
                    return
                if error.status != CONFLICT:
                    raise
                due = asyncio.get_running_loop().time() + RETRY_SECONDS  # written by others, or of another UID and gone
            await self._pause(due)

    async def _pause(self, due: float) -> None:
        left = None if math.isinf(due) else max(0.0, due - asyncio.get_running_loop().time())
        try:
            async with asyncio.timeout(left):
                await self.changed.wait()
        except TimeoutError:
            pass

    async def _advance(self) -> float:
        """Take all steps that are due and write the status at the last one. Returns when the next is due."""
        fate, clock = self.surroundings.fate(self.pod), asyncio.get_running_loop().time
        while self.blocked or clock() >= self._entered + seconds(self._progress.step, fate):
            step = await self._unblocked(following(self._progress.step, fate.kind))
            if step is not self._progress.step:
                self._progress.enter(step, fate, now())
                self._entered = clock()
            if self.blocked:
                break
        await self._write()
        return math.inf if self.blocked else self._entered + seconds(self._progress.step, fate)

    async def _unblocked(self, step: Step) -> Step:
        """The step, or the one instead of it for want of a Secret or ConfigMap."""
        self._progress.complaint = ""
        if step is not Step.STARTED or self._progress.step in RUNNING:
            return step
        for reference in references(self.pod):
            complaint = await self.surroundings.complaint(self.pod["metadata"]["namespace"], reference)
            if complaint:
                self._progress.complaint = (
                    words.mount_failure(reference.volume, complaint) if reference.volume else complaint
                )
                self._progress.blocked_container = reference.container
                return Step.NO_VOLUME if reference.volume else Step.NO_CONFIG
        return step

    async def _write(self) -> None:
        mark = (self._progress.step, self._progress.restarts, self._progress.complaint)
        if mark == self._sent:
            return
        body = {"metadata": {"uid": self.pod["metadata"]["uid"]}, "status": status(self.pod, self._progress)}
        await self.rest.patch(f"{self.path}/status", body, STRATEGIC)
        self._sent = mark
        for reason, message in self._events():
            await self._event(reason, message)

    def _events(self) -> Iterator[tuple[str, str]]:
        """The warnings that a kubelet gives at this step."""
        container = subject(self.pod, self._progress)
        image = next(each["image"] for each in self.pod["spec"]["containers"] if each["name"] == container)
        match self._progress.step:
            case Step.NO_VOLUME:
                yield "FailedMount", self._progress.complaint
            case Step.NO_CONFIG:
                yield "Failed", f"Error: {self._progress.complaint}"
            case Step.PULL_FAILED:
                error = words.pull_error(image, self._progress.fate.message)
                yield "Failed", f'Failed to pull image "{image}": {error}'
                yield "Failed", "Error: ErrImagePull"
            case Step.PULL_BACK_OFF:
                yield "Failed", "Error: ImagePullBackOff"
            case Step.CRASHED if self._progress.restarts:
                yield "BackOff", words.restart_event(self.pod, container)
            case Step.EVICTED:
                yield "Evicted", self._progress.fate.message or words.EVICTED

    async def _event(self, reason: str, message: str) -> None:
        meta, time = self.pod["metadata"], now()
        reference = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": meta["namespace"],
            "name": meta["name"],
            "uid": meta["uid"],
        }
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{meta['name']}.{uuid4().hex[:16]}", "namespace": meta["namespace"]},
            "involvedObject": reference,
            "type": "Warning",
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet", "host": self.pod["spec"]["nodeName"]},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
        }
        try:
            await self.rest.create(f"/api/v1/namespaces/{meta['namespace']}/events", event)
        except ApiError as error:
            if error.status not in (FORBIDDEN, NOT_FOUND):  # the namespace is going
                raise

    async def _end(self) -> None:
        """Take the time that ending takes, then let the object go."""
        meta = self.pod["metadata"]
        grace = float(meta.get("deletionGracePeriodSeconds") or 0)
        await asyncio.sleep(min(self.surroundings.fate(self.pod).end_after, grace))
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        try:
            await self.rest.delete(self.path, options)
        except ApiError as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise
