"""A collection kept in memory: listed once, then watched; listed again after every gap."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Generic, Protocol, TypeVar

import structlog

from epd_operator.cluster.api import Cluster, Page
from epd_operator.cluster.errors import ApiError, ClusterError
from epd_operator.cluster.resources import Object, Resource

RETRY_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
REMEMBERED_DELETIONS = 10_000
"""So many UIDs of deleted objects are kept, against answers that arrive after the news of the deletion."""


class Record(Protocol):
    """What is kept of an object."""

    @property
    def uid(self) -> str:
        """Identity of the object."""

    @property
    def version(self) -> int:
        """Its resourceVersion: the larger, the later (Kubernetes 1.35 made this part of the API)."""


Kept = TypeVar("Kept", bound=Record)
Key = tuple[str, str]
"""Namespace and name."""


def version_of(body: Object) -> int:
    """The resourceVersion as a number; 0 where it is none."""
    text = body["metadata"].get("resourceVersion", "")
    return int(text) if text.isdecimal() else 0


def _key(body: Object) -> Key:
    return body["metadata"].get("namespace", ""), body["metadata"]["name"]


class Informer(Generic[Kept]):
    """One collection of one namespace, or of the cluster.

    `keep` makes the record of an object from its body and the record before; `changed` hears of every record that came,
    changed or went. It is a hint about the world, at most as old as the watch's last word: writes must be safe if it
    is wrong.
    """

    def __init__(
        self,
        cluster: Cluster,
        resource: Resource,
        keep: Callable[[Object, Kept | None], Kept],
        changed: Callable[[Key, Kept | None, Kept | None], None],
        *,
        namespace: str | None = None,
        labels: str = "",
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        """Set once the collection was listed."""
        self.refusal: ApiError | None = None
        """Why it cannot be read, if the API server refuses it."""
        self._cluster = cluster
        self._keep = keep
        self._changed = changed
        self._namespace = namespace
        self._labels = labels
        self._records: dict[Key, Kept] = {}
        self._deleted: dict[str, None] = {}
        self._log = structlog.get_logger().bind(kind=resource.kind, watched_namespace=namespace or "*")

    def get(self, namespace: str, name: str) -> Kept | None:
        """The record of one object."""
        return self._records.get((namespace, name))

    def __iter__(self) -> Iterator[Kept]:
        return iter(list(self._records.values()))

    def __len__(self) -> int:
        return len(self._records)

    async def run(self) -> None:
        """Keep the collection, for ever."""
        failures = 0
        while True:
            try:
                version = await self._relist()
                failures = 0
                while True:
                    version = await self._follow(version)
            except ClusterError as error:
                expired = isinstance(error, ApiError) and error.is_expired
                if isinstance(error, ApiError) and error.status in (401, 403, 404):
                    self.refusal = error
                    self.synced.set()  # nothing will come: do not wait for it
                if not expired:
                    self._log.warning("watch failed; listing again", error=str(error), failures=failures)
                await asyncio.sleep(RETRY_SECONDS[min(failures, len(RETRY_SECONDS) - 1)])
                failures += 1

    def feed(self, body: Object) -> Kept | None:
        """Take an object from an answer, which may be ahead of the watch or behind it. Returns its record."""
        if body["metadata"]["uid"] in self._deleted:
            return None
        self._put(body)
        return self._records.get(_key(body))

    def forget(self, body: Object) -> None:
        """Take the news that an object was deleted from somebody else's watch."""
        uid, key = body["metadata"]["uid"], _key(body)
        self._forget(uid)
        known = self._records.get(key)
        if known is not None and known.uid == uid:
            self._drop(key)

    async def take_over(self, pages: AsyncIterator[Page]) -> str:
        """Take a whole listing: what it lacks is gone, unless it is younger. Returns the first page's version."""
        present, version = set(), ""
        async for page in pages:
            version = version or page.version
            for body in page.items:
                present.add(_key(body))
                self.feed(body)
        listed_at = int(version) if version.isdecimal() else 0
        for key in self._records.keys() - present:
            if not listed_at or self._records[key].version <= listed_at:
                self._drop(key)
        return version

    async def _relist(self) -> str:
        version = await self.take_over(self._cluster.pages(self.resource, self._namespace, self._labels))
        self.refusal = None
        self.synced.set()
        return version

    async def _follow(self, version: str) -> str:
        """One watch to its end. Returns the version it came to."""
        async for event in self._cluster.watch(self.resource, version, self._namespace, self._labels):
            metadata = event.object["metadata"]
            version = metadata["resourceVersion"]
            if event.type == "DELETED":
                self.forget(event.object)
            elif event.type != "BOOKMARK":
                self._put(event.object)
        return version

    def _put(self, body: Object) -> None:
        key = _key(body)
        before = self._records.get(key)
        version = version_of(body)
        if before is not None and version and before.version >= version:
            return  # an answer to a write told it before
        same = before is not None and before.uid == body["metadata"]["uid"]
        record = self._keep(body, before if same else None)
        self._records[key] = record
        self._changed(key, before, record)

    def _drop(self, key: Key) -> None:
        before = self._records.pop(key)
        self._forget(before.uid)
        self._changed(key, before, None)

    def _forget(self, uid: str) -> None:
        self._deleted[uid] = None
        if len(self._deleted) > REMEMBERED_DELETIONS:
            del self._deleted[next(iter(self._deleted))]
