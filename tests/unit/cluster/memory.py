"""A cluster in memory: enough of an API server for what is tested without one."""

import asyncio
import copy
import itertools
from collections.abc import AsyncIterator
from typing import Any

from epd_operator.cluster.api import Page, WatchEvent
from epd_operator.cluster.errors import ApiError
from epd_operator.cluster.resources import Object, Resource

PAGE = 2
"""Objects of one answer to a list."""


class MemoryCluster:
    """Objects by path. Watches tell every change that comes after their version."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.requests: list[tuple[str, str]] = []
        self.failing: list[Exception] = []
        """Raised by the next requests, one each."""
        self._versions = itertools.count(1)
        self._version = 0
        self._log: list[tuple[int, str, WatchEvent]] = []
        self._changed = asyncio.Event()

    def _note(self, verb: str, path: str) -> None:
        self.requests.append((verb, path))
        if self.failing:
            raise self.failing.pop(0)

    def _put(self, resource: Resource, body: Object, kind: Any) -> Object:
        body = copy.deepcopy(body)
        self._version = next(self._versions)
        body["metadata"]["resourceVersion"] = str(self._version)
        body["metadata"].setdefault("uid", f"uid-{self._version}")
        metadata = body["metadata"]
        self.objects[resource.path(metadata.get("namespace"), metadata["name"])] = body
        self._tell(resource, kind, body)
        return copy.deepcopy(body)

    def _tell(self, resource: Resource, kind: Any, body: Object) -> None:
        self._log.append((self._version, resource.plural, WatchEvent(kind, copy.deepcopy(body))))
        self._changed.set()
        self._changed = asyncio.Event()

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object:
        path = resource.path(namespace, name)
        self._note("get", path)
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found")
        return copy.deepcopy(self.objects[path])

    async def pages(self, resource: Resource, namespace: str | None = None, labels: str = "") -> AsyncIterator[Page]:
        self._note("list", resource.plural)
        prefix = resource.collection(namespace).rsplit("/", 1)[0]
        found = [
            copy.deepcopy(body)
            for path, body in self.objects.items()
            if path.startswith(prefix) and f"/{resource.plural}/" in path
        ]
        version = str(self._version)
        for start in range(0, max(1, len(found)), PAGE):
            yield Page(found[start : start + PAGE], version)

    async def watch(
        self, resource: Resource, version: str, namespace: str | None = None, labels: str = ""
    ) -> AsyncIterator[WatchEvent]:
        self._note("watch", resource.plural)
        position = 0
        while True:
            for number, plural, event in self._log[position:]:
                position += 1
                if plural == resource.plural and number > int(version):
                    yield event
            await self._changed.wait()

    async def create(self, resource: Resource, body: Object) -> Object:
        path = resource.path(body["metadata"].get("namespace"), body["metadata"]["name"])
        self._note("create", path)
        if path in self.objects:
            raise ApiError(409, "AlreadyExists", f"{path} already exists")
        return self._put(resource, body, "ADDED")

    async def apply(self, resource: Resource, body: Object, *, force: bool) -> Object:
        path = resource.path(body["metadata"].get("namespace"), body["metadata"]["name"])
        self._note("apply", path)
        known = self.objects.get(path)
        merged = body if known is None else _merged(known, body)
        return self._put(resource, merged, "ADDED" if known is None else "MODIFIED")

    async def patch(
        self, resource: Resource, namespace: str | None, name: str, body: Object, subresource: str = ""
    ) -> Object:
        path = resource.path(namespace, name)
        self._note("patch", path)
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found")
        known = self.objects[path]
        wanted = body.get("metadata", {}).get("resourceVersion")
        if wanted is not None and wanted != known["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "the object has been modified")
        return self._put(resource, _merged(known, body), "MODIFIED")

    async def delete(self, resource: Resource, namespace: str | None, name: str, uid: str) -> None:
        path = resource.path(namespace, name)
        self._note("delete", path)
        if path not in self.objects:
            raise ApiError(404, "NotFound", f"{path} not found")
        body = self.objects.pop(path)
        self._version = next(self._versions)
        body["metadata"]["resourceVersion"] = str(self._version)
        self._tell(resource, "DELETED", body)


def _merged(base: Object, patch: Object) -> Object:
    result = dict(base)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = _merged(result[key], value)
        else:
            result[key] = value
    return result
