"""What the operator asks of an API server: a small interface, so that tests can cut it off and leaders can fence it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal, Protocol

from epd_operator.cluster.resources import Object, Resource

FIELD_MANAGER = "epd-operator"


@dataclass(frozen=True, slots=True)
class Page:
    """Objects of a collection at one version: all, or some of many."""

    items: list[Object]
    version: str
    """Where a watch may begin."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch; a BOOKMARK carries a version only."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: Object


class Cluster(Protocol):
    """Requests to one API server. All raise ApiError if it refuses and Unreachable if it does not answer."""

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object:
        """Read one object."""

    def pages(self, resource: Resource, namespace: str | None = None, labels: str = "") -> AsyncIterator[Page]:
        """Read all objects of a namespace, or of the cluster, with some labels (a label selector), page by page.

        There is at least one page, and all have the same version. A caller that keeps little of each object needs the
        memory of one page.
        """

    def watch(
        self, resource: Resource, version: str, namespace: str | None = None, labels: str = ""
    ) -> AsyncIterator[WatchEvent]:
        """Changes after a version, until the server ends the watch. Raises ApiError with `is_expired` for a gap."""

    async def create(self, resource: Resource, body: Object) -> Object:
        """Create an object; refused with `is_conflict` where the name is taken."""

    async def apply(self, resource: Resource, body: Object, *, force: bool) -> Object:
        """Server-side apply of all fields that the operator owns. `force`: take fields that others own."""

    async def patch(
        self, resource: Resource, namespace: str | None, name: str, body: Object, subresource: str = ""
    ) -> Object:
        """JSON merge patch. `metadata.uid` and `metadata.resourceVersion` in the body are preconditions."""

    async def delete(self, resource: Resource, namespace: str | None, name: str, uid: str) -> None:
        """Delete one object and, in the background, what it owns. Refused with `is_conflict` if its uid is another."""
