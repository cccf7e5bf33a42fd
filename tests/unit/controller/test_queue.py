"""The work queue: each key once, never twice at a time, later after failures."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable

import pytest

from epd_operator.cluster.errors import ApiError, Unreachable
from epd_operator.controller import queue as module
from epd_operator.controller.queue import Key, WorkQueue

A, B = ("n", "a"), ("n", "b")


async def until(holds: Callable[[], object]) -> None:
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it does not come to pass")


@contextlib.asynccontextmanager
async def running(queue: WorkQueue) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_key_is_worked_on_once_however_often_it_was_added() -> None:
    done: list[Key] = []

    async def work(key: Key) -> None:
        done.append(key)

    queue = WorkQueue(work, workers=3)
    for key in (A, B, A, A, B):
        queue.add(key)
    assert queue.depth == 2
    async with running(queue):
        await until(lambda: queue.idle)
    assert sorted(done) == [A, B]


async def test_a_key_is_never_worked_on_twice_at_once_and_nothing_is_lost() -> None:
    active: set[Key] = set()
    count = 0
    gate = asyncio.Event()

    async def work(key: Key) -> None:
        nonlocal count
        assert key not in active
        active.add(key)
        count += 1
        await gate.wait()
        active.remove(key)

    queue = WorkQueue(work, workers=3)
    queue.add(A)
    async with running(queue):
        await until(lambda: count == 1)
        queue.add(A)
        queue.add(B)
        await until(lambda: count == 2)
        assert active == {A, B}
        gate.set()
        await until(lambda: queue.idle)
    assert count == 3


async def test_what_runs_goes_ahead_of_what_begins_but_for_every_fourth_turn() -> None:
    done: list[str] = []

    async def work(key: Key) -> None:
        done.append(key[1])

    queue = WorkQueue(work, workers=1)
    old = [("n", f"old-{number}") for number in range(12)]
    for key in old:
        queue.add(key)
    async with running(queue):
        await until(lambda: queue.idle)
        done.clear()
        for number in range(12):  # without a pause between them: the worker does not come to its turn
            queue.add(("n", f"new-{number}"))
        for key in old:
            queue.add(key)
        await until(lambda: queue.idle)
    assert len(done) == len(set(done)) == 24
    assert [int(name.partition("-")[2]) for name in done if name.startswith("new")] == list(range(12))
    before_the_last_old = done[: max(index for index, name in enumerate(done) if name.startswith("old"))]
    assert sum(name.startswith("new") for name in before_the_last_old) in (3, 4)


async def test_it_is_beginning_while_what_is_new_is_due() -> None:
    seen: list[bool] = []

    async def work(key: Key) -> None:
        seen.append(queue.beginning)

    queue = WorkQueue(work, workers=1)
    seen.append(queue.beginning)
    queue.add(A)
    queue.add(B)
    seen.append(queue.beginning)
    async with running(queue):
        await until(lambda: queue.idle)
        queue.add(A)
        queue.add(("n", "later"), 60)
        await until(lambda: len(seen) == 5)
    assert seen == [False, True, True, False, False]


async def test_a_key_that_was_dropped_is_new_again() -> None:
    done: list[str] = []

    async def work(key: Key) -> None:
        done.append(key[1])

    queue = WorkQueue(work, workers=1)
    queue.add(A)
    async with running(queue):
        await until(lambda: queue.idle)
        queue.drop(A)
        done.clear()
        queue.add(B)
        queue.add(A)
        await until(lambda: queue.idle)
    assert done == ["b", "a"]


async def test_what_is_due_later_is_not_held_up_by_work_that_goes_on() -> None:
    gate = asyncio.Event()
    done: list[Key] = []

    async def work(key: Key) -> None:
        done.append(key)
        if key == A:
            await gate.wait()

    queue = WorkQueue(work, workers=2)
    queue.add(A)
    async with running(queue):
        await until(lambda: done == [A])
        queue.add(A)
        queue.add(B, 0.01)
        await until(lambda: done == [A, B])
        gate.set()
        await until(lambda: done == [A, B, A])


async def test_the_earliest_wish_counts() -> None:
    done: list[Key] = []

    async def work(key: Key) -> None:
        done.append(key)

    queue = WorkQueue(work, workers=1)
    queue.add(A, 60)
    queue.add(A, 0)
    queue.add(A, 60)
    async with running(queue):
        await until(lambda: done == [A])
    assert queue.depth == 0


async def test_failures_are_tried_again_later_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_BACKOFF", 0.001)
    waits: list[float] = []
    tries = 0

    async def work(key: Key) -> None:
        nonlocal tries
        tries += 1
        if tries < 5:
            raise Unreachable("no answer")

    queue = WorkQueue(work, workers=1)
    add = queue.add

    def spy(key: Key, after: float = 0.0) -> None:
        waits.append(after)
        add(key, after)

    monkeypatch.setattr(queue, "add", spy)
    queue.add(A)
    async with running(queue):
        await until(lambda: tries == 5 and queue.idle)
    assert waits[0] == 0
    assert all(earlier < later for earlier, later in itertools.pairwise(waits))


async def test_work_says_when_to_look_again() -> None:
    answers = [0.001, None]
    count = 0

    async def work(key: Key) -> float | None:
        nonlocal count
        count += 1
        return answers[count - 1]

    queue = WorkQueue(work, workers=1)
    queue.add(A)
    async with running(queue):
        await until(lambda: count == 2)


async def test_a_dropped_key_is_forgotten() -> None:
    async def work(key: Key) -> None:
        raise AssertionError("it was dropped")

    queue = WorkQueue(work, workers=1)
    queue.add(A)
    queue.drop(A)
    async with running(queue):
        await asyncio.sleep(0.01)
    assert (queue.depth, queue.age) == (0, 0.0)


async def test_age_and_stuck_follow_the_clock() -> None:
    now = 0.0
    gate = asyncio.Event()

    async def work(key: Key) -> None:
        await gate.wait()

    queue = WorkQueue(work, workers=1, clock=lambda: now)
    queue.add(A)
    queue.add(B)
    async with running(queue):
        await until(lambda: queue.depth == 1)
        now = 400.0
        assert queue.age == 400.0
        assert queue.stuck == "a reconcile does not end: n/a"
        gate.set()
        await until(lambda: queue.idle)
    assert not queue.stuck


async def test_a_queue_whose_workers_do_nothing_is_stuck() -> None:
    now = 0.0

    async def work(key: Key) -> None:
        raise AssertionError("no worker takes it")

    queue = WorkQueue(work, workers=0, clock=lambda: now)

    def stuck() -> str:
        return queue.stuck

    queue.add(A)
    now = 1000.0
    assert not stuck()  # the cluster is still being read
    async with running(queue):
        await asyncio.sleep(0)
        assert not stuck()
        now = 1301.0
        assert stuck() == "nothing was reconciled for 301 s, and 1 objects wait"
        queue.drop(A)
        assert not stuck()


async def test_a_wish_of_the_api_server_to_wait_is_granted() -> None:
    now, calls = 0.0, 0

    async def work(key: Key) -> None:
        nonlocal calls
        calls += 1
        raise ApiError(429, "TooManyRequests", "busy", retry_after=30)

    queue = WorkQueue(work, workers=1, clock=lambda: now)
    queue.add(A)
    async with running(queue):
        await until(lambda: calls == 1)
        await until(lambda: queue.idle)
        now = 29.0
        assert queue.depth == 0
        now = 43.0
        assert queue.depth == 1
