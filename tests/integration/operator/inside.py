"""The operator inside the test's own process: without Kopf and leadership, over a cluster that can be cut off."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from epd_operator.cluster.api import Cluster, Page, WatchEvent
from epd_operator.cluster.client import ApiServer
from epd_operator.cluster.credentials import load_credentials
from epd_operator.cluster.errors import ApiError, ClusterError, Unreachable
from epd_operator.cluster.resources import Object, Resource
from epd_operator.controller.kinds import EPD_DEPLOYMENTS
from epd_operator.controller.operator import Operator
from epd_operator.controller.settings import Settings

LOOK_SECONDS = 0.1
LIMIT_SECONDS = 90.0
SOON_SECONDS = 3.0


@contextlib.asynccontextmanager
async def api(kubeconfig: Path, user_agent: str = "operator-test") -> AsyncIterator[ApiServer]:
    async with ApiServer(await load_credentials(kubeconfig), user_agent) as server:
        yield server


async def listing(server: ApiServer, resource: Resource, namespace: str, labels: str = "") -> list[Object]:
    """A collection as a whole."""
    return [body async for page in server.pages(resource, namespace, labels) for body in page.items]


@dataclass
class CutOff:
    """A cluster that answers so many requests; the last of them is carried out and its answer is lost.

    Lists and watches do not count, and end with the rest.
    """

    cluster: Cluster
    after: int | None = None
    """None: never."""
    count: int = 0
    happened: asyncio.Event = field(default_factory=asyncio.Event)

    async def _count(self, request: Any) -> Any:
        self._check(request)
        self.count += 1
        last = self.count == self.after
        if last:
            self.happened.set()
        try:
            answer = await request
        except ApiError:
            if not last:
                raise
        if last:
            raise Unreachable("the answer is lost")
        return answer

    def _check(self, request: Any = None) -> None:
        if self.happened.is_set():
            if request is not None:
                request.close()
            raise Unreachable("cut off")

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object:
        found: Object = await self._count(self.cluster.get(resource, namespace, name))
        return found

    async def pages(self, resource: Resource, namespace: str | None = None, labels: str = "") -> AsyncIterator[Page]:
        self._check()
        async for page in self.cluster.pages(resource, namespace, labels):
            yield page

    async def watch(
        self, resource: Resource, version: str, namespace: str | None = None, labels: str = ""
    ) -> AsyncIterator[WatchEvent]:
        self._check()
        async for event in self.cluster.watch(resource, version, namespace, labels):
            self._check()
            yield event

    async def create(self, resource: Resource, body: Object) -> Object:
        created: Object = await self._count(self.cluster.create(resource, body))
        return created

    async def apply(self, resource: Resource, body: Object, *, force: bool) -> Object:
        applied: Object = await self._count(self.cluster.apply(resource, body, force=force))
        return applied

    async def patch(
        self, resource: Resource, namespace: str | None, name: str, body: Object, subresource: str = ""
    ) -> Object:
        patched: Object = await self._count(self.cluster.patch(resource, namespace, name, body, subresource))
        return patched

    async def delete(self, resource: Resource, namespace: str | None, name: str, uid: str) -> None:
        await self._count(self.cluster.delete(resource, namespace, name, uid))


class Inside:
    """An operator of one namespace and class while the context lasts. Leaving it finishes nothing, like a kill."""

    def __init__(self, cluster: Cluster, namespace: str, operator_class: str) -> None:
        settings = Settings(namespaces=(namespace,), operator_class=operator_class, workers=2)
        self.operator = Operator(cluster, settings)

    async def __aenter__(self) -> Self:
        parts = (self.operator.world.run, self.operator.work, self._tell)
        self._tasks = [asyncio.create_task(part()) for part in parts]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def rests(self) -> bool:
        """Whether something was done, and nothing is or will be soon: after news it waits a moment for more."""
        queue = self.operator.queue
        soon = any(due - queue.clock() < SOON_SECONDS for due in queue._due.values())
        return bool(queue._begun) and queue.idle and not soon and not self.operator.reconciler.postponed

    async def _tell(self) -> None:
        """In the place of Kopf's watch."""
        while True:
            with contextlib.suppress(ClusterError):
                await self.operator.world.relist()
            await asyncio.sleep(LOOK_SECONDS)


async def until(what: str, ask: Callable[[], Any], seconds: float = LIMIT_SECONDS) -> Any:
    """Ask, a coroutine function, until the answer is true; return it."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not (answer := await ask()):
        assert loop.time() < deadline, f"not within {seconds:g} s: {what}; the last answer was {answer!r}"
        await asyncio.sleep(LOOK_SECONDS)
    return answer


async def is_ready(server: ApiServer, namespace: str, name: str) -> bool:
    """Ready for the latest generation."""
    body = await server.get(EPD_DEPLOYMENTS, namespace, name)
    return any(
        (c["type"], c["status"], c["observedGeneration"]) == ("Ready", "True", body["metadata"]["generation"])
        for c in (body.get("status") or {}).get("conditions") or []
    )
