"""Informers: the picture follows the collection through changes, gaps and own writes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from epd_operator.cluster import informer as module
from epd_operator.cluster.api import Page
from epd_operator.cluster.errors import ApiError, Unreachable
from epd_operator.cluster.informer import Informer, version_of
from epd_operator.cluster.resources import CONFIG_MAPS, Object
from tests.unit.cluster.memory import MemoryCluster


@dataclass(frozen=True)
class Seen:
    uid: str
    version: int
    data: str


Change = tuple[str, str | None, str | None]


class Told:
    """An informer of ConfigMaps, and what it said."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.changes: list[Change] = []
        self.informer = Informer(cluster, CONFIG_MAPS, self._keep, self._changed, namespace="n")

    @staticmethod
    def _keep(body: Object, before: Seen | None) -> Seen:
        return Seen(body["metadata"]["uid"], version_of(body), body["data"]["a"])

    def _changed(self, key: tuple[str, str], before: Seen | None, after: Seen | None) -> None:
        self.changes.append((key[1], before.data if before else None, after.data if after else None))

    def names(self) -> dict[str, str]:
        return {name: seen.data for name in "xyz" if (seen := self.informer.get("n", name)) is not None}


def config(name: str, data: str) -> Object:
    return {"metadata": {"name": name, "namespace": "n"}, "data": {"a": data}}


async def settle() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
async def told(cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Told]:
    monkeypatch.setattr(module, "RETRY_SECONDS", (0.0,))
    await cluster.create(CONFIG_MAPS, config("x", "1"))
    told = Told(cluster)
    task = asyncio.create_task(told.informer.run())
    await told.informer.synced.wait()
    yield told
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_it_lists_and_follows(cluster: MemoryCluster, told: Told) -> None:
    await cluster.create(CONFIG_MAPS, config("y", "1"))
    await cluster.apply(CONFIG_MAPS, config("x", "2"), force=True)
    await cluster.delete(CONFIG_MAPS, "n", "y", "")
    await settle()
    assert told.changes == [("x", None, "1"), ("y", None, "1"), ("x", "1", "2"), ("y", "1", None)]
    assert told.names() == {"x": "2"}


async def test_an_own_write_is_taken_at_once_and_told_once(cluster: MemoryCluster, told: Told) -> None:
    told.informer.feed(await cluster.apply(CONFIG_MAPS, config("x", "2"), force=True))
    assert told.names() == {"x": "2"}
    await settle()
    assert told.changes == [("x", None, "1"), ("x", "1", "2")]


async def test_an_answer_that_comes_after_the_news_of_the_deletion_is_no_news(
    cluster: MemoryCluster, told: Told
) -> None:
    answer = await cluster.apply(CONFIG_MAPS, config("x", "2"), force=True)
    await cluster.delete(CONFIG_MAPS, "n", "x", "")
    await settle()
    assert told.informer.feed(answer) is None
    assert told.names() == {}


async def test_what_went_in_a_gap_is_missed(cluster: MemoryCluster) -> None:
    told = Told(cluster)
    for name in "xy":
        told.informer.feed(await cluster.create(CONFIG_MAPS, config(name, "1")))
    await cluster.delete(CONFIG_MAPS, "n", "x", "")
    pages = [page async for page in cluster.pages(CONFIG_MAPS, "n")]

    async def before() -> AsyncIterator[Page]:
        for page in pages:
            yield page

    told.informer.feed(await cluster.create(CONFIG_MAPS, config("z", "1")))  # younger than the listing
    await told.informer.take_over(before())
    assert told.names() == {"y": "1", "z": "1"}
    assert told.changes[-1] == ("x", "1", None)


async def test_what_goes_while_pages_come_stays_away(cluster: MemoryCluster) -> None:
    told = Told(cluster)
    bodies = [await cluster.create(CONFIG_MAPS, config(name, "1")) for name in "xyz"]
    told.informer.feed(bodies[2])

    async def pages() -> AsyncIterator[Page]:
        async for page in cluster.pages(CONFIG_MAPS, "n"):
            yield page
            told.informer.forget(bodies[2])

    assert await told.informer.take_over(pages()) == bodies[2]["metadata"]["resourceVersion"]
    assert sorted(told.names()) == ["x", "y"]


async def test_a_new_object_under_an_old_name_is_another(cluster: MemoryCluster, told: Told) -> None:
    gone = await cluster.get(CONFIG_MAPS, "n", "x")
    await cluster.delete(CONFIG_MAPS, "n", "x", "")
    await cluster.create(CONFIG_MAPS, config("x", "9"))
    await settle()
    told.informer.forget(gone)  # late news of the first
    assert told.names() == {"x": "9"}


@pytest.mark.parametrize(
    "error", [Unreachable("no answer"), ApiError(410, "Expired", "too old"), ApiError(500, "", "")]
)
async def test_it_lists_again_after_trouble(
    cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", (0.0,))
    await cluster.create(CONFIG_MAPS, config("x", "1"))
    cluster.failing = [error, error]
    told = Told(cluster)
    task = asyncio.create_task(told.informer.run())
    await told.informer.synced.wait()
    assert told.names() == {"x": "1"}
    assert told.informer.refusal is None
    task.cancel()


async def test_what_may_not_be_read_is_not_waited_for(cluster: MemoryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", (60.0,))
    cluster.failing = [ApiError(403, "Forbidden", "no")]
    told = Told(cluster)
    task = asyncio.create_task(told.informer.run())
    await told.informer.synced.wait()
    assert told.informer.refusal is not None
    task.cancel()
