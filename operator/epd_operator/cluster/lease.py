"""Leadership: one Lease, held by renewing it (https://kubernetes.io/docs/concepts/architecture/leases/).

No clock of another machine is believed: a lease is taken over when it was not seen to change for its whole duration.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog

from epd_operator.cluster.api import Cluster, Page, WatchEvent
from epd_operator.cluster.errors import ApiError, ClusterError, NotLeading
from epd_operator.cluster.resources import LEASES, Object, Resource

log = structlog.get_logger()


@dataclass
class Leadership:
    """One candidate for one Lease."""

    cluster: Cluster
    namespace: str
    name: str
    identity: str
    """Tells the candidates apart: unique for each start of a program."""
    duration: float = 15.0
    """Seconds without a renewal after which another may lead."""
    renew: float = 5.0
    """Seconds between renewals."""
    retry: float = 2.0
    """Seconds between the looks of one who waits."""
    clock: Callable[[], float] = time.monotonic
    trouble: str = field(default="", init=False)
    """Why the Lease could not be read or written the last time; empty if it could."""
    _held_until: float = field(default=0.0, init=False)
    _seen: tuple[str, str] = field(default=("", ""), init=False)
    """Holder and renewal time, as last read."""
    _seen_at: float = field(default=0.0, init=False)

    @property
    def leads(self) -> bool:
        """Whether the Lease is held, by this machine's own clock: a program that was stopped for long finds it lost."""
        return self.clock() < self._held_until

    async def acquire(self) -> None:
        """Wait until the Lease is held."""
        while True:
            try:
                held = await self._try()
                self.trouble = ""
                if held:
                    log.info("leading", lease=f"{self.namespace}/{self.name}", identity=self.identity)
                    return
            except ClusterError as error:
                self.trouble = str(error)
                log.warning("the lease cannot be read or written; trying again", error=str(error))
            await asyncio.sleep(self.retry)

    async def keep(self) -> None:
        """Renew for ever, sooner after a failure. Raises NotLeading once the Lease is lost."""
        wait = self.renew
        while True:
            await asyncio.sleep(wait)
            wait, trouble = self.renew, ""
            try:
                if not await self._try():
                    trouble = "somebody else wrote it"
            except ClusterError as error:
                trouble = str(error)
            holder = self._seen[0]
            if holder not in ("", self.identity):
                self._held_until = 0.0
                raise NotLeading(f"{holder} holds the lease {self.namespace}/{self.name}")
            if trouble:
                if not self.leads:
                    raise NotLeading(f"the lease {self.namespace}/{self.name} could not be renewed: {trouble}")
                log.warning("the lease could not be renewed; trying again", error=trouble)
                wait = self.retry

    async def release(self) -> None:
        """Give the Lease back, so that another leads at once."""
        if not self.leads:
            return
        self._held_until = 0.0
        try:
            lease = await self.cluster.get(LEASES, self.namespace, self.name)
            if lease["spec"].get("holderIdentity") == self.identity:
                await self._write(lease, {"holderIdentity": "", "leaseDurationSeconds": 1})
        except ClusterError as error:
            log.warning("the lease could not be given back: it runs out", error=str(error))

    async def _try(self) -> bool:
        """Take or renew the Lease if it is free, ours or run out. Time counts from before the request."""
        now = self.clock()
        try:
            lease = await self.cluster.get(LEASES, self.namespace, self.name)
        except ApiError as error:
            if not error.is_gone:
                raise
            return await self._create(now)
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        seen = (holder, str(spec.get("renewTime", "")))
        if seen != self._seen:
            self._seen, self._seen_at = seen, now
        duration = float(spec.get("leaseDurationSeconds") or self.duration)
        if holder not in ("", self.identity) and now < self._seen_at + duration:
            return False
        changes = int(spec.get("leaseTransitions") or 0) + (holder != self.identity)
        acquired = {} if holder == self.identity else {"acquireTime": _timestamp()}
        try:
            await self._write(lease, {**self._claim(), **acquired, "leaseTransitions": changes})
        except ApiError as error:
            if error.is_conflict:  # another was quicker
                return False
            raise
        self._held_until = now + self.duration
        return True

    async def _create(self, now: float) -> bool:
        body = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": self.name, "namespace": self.namespace},
            "spec": {**self._claim(), "acquireTime": _timestamp(), "leaseTransitions": 0},
        }
        try:
            await self.cluster.create(LEASES, body)
        except ApiError as error:
            if error.is_conflict:
                return False
            raise
        self._held_until = now + self.duration
        return True

    def _claim(self) -> Object:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": round(self.duration),
            "renewTime": _timestamp(),
        }

    async def _write(self, lease: Object, spec: Object) -> None:
        version = {"resourceVersion": lease["metadata"]["resourceVersion"]}
        await self.cluster.patch(LEASES, self.namespace, self.name, {"metadata": version, "spec": spec})


def _timestamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True)
class Fenced:
    """A cluster that takes writes only while the Lease is held."""

    cluster: Cluster
    leads: Callable[[], bool]

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object:
        """Read one object."""
        return await self.cluster.get(resource, namespace, name)

    def pages(self, resource: Resource, namespace: str | None = None, labels: str = "") -> AsyncIterator[Page]:
        """Read a collection."""
        return self.cluster.pages(resource, namespace, labels)

    def watch(
        self, resource: Resource, version: str, namespace: str | None = None, labels: str = ""
    ) -> AsyncIterator[WatchEvent]:
        """Changes after a version."""
        return self.cluster.watch(resource, version, namespace, labels)

    async def create(self, resource: Resource, body: Object) -> Object:
        """Create an object. Raises NotLeading."""
        self._check()
        return await self.cluster.create(resource, body)

    async def apply(self, resource: Resource, body: Object, *, force: bool) -> Object:
        """Server-side apply. Raises NotLeading."""
        self._check()
        return await self.cluster.apply(resource, body, force=force)

    async def patch(
        self, resource: Resource, namespace: str | None, name: str, body: Object, subresource: str = ""
    ) -> Object:
        """Merge patch. Raises NotLeading."""
        self._check()
        return await self.cluster.patch(resource, namespace, name, body, subresource)

    async def delete(self, resource: Resource, namespace: str | None, name: str, uid: str) -> None:
        """Delete one object. Raises NotLeading."""
        self._check()
        await self.cluster.delete(resource, namespace, name, uid)

    def _check(self) -> None:
        if not self.leads():
            raise NotLeading("the lease is lost: another operator may be writing")
