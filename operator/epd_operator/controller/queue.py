"""A work queue that holds each key once, with delays and with a growing wait after failures.

What was worked on before goes ahead of what is new: news of an object that runs do not wait behind hundreds that
begin, and where many begin at once the first are told ready before the last are made. Every fourth turn is a new one's.
"""

import asyncio
import contextlib
import heapq
import itertools
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from epd_operator.cluster.errors import ClusterError

Key = tuple[str, str]
"""Namespace and name."""
Entry = tuple[float, int, Key]
"""When it is due, a number that keeps the order, and the key."""
FIRST_BACKOFF = 0.5
LAST_BACKOFF = 60.0
TURNS = 4
"""One of so many is for what is new, if anything is."""
STUCK_SECONDS = 300.0
"""A reconcile that takes longer hangs: every request has a limit far below."""

log = structlog.get_logger()


@dataclass
class WorkQueue:
    """Keys to be reconciled. A key is never worked on twice at once; what comes meanwhile is done afterwards."""

    work: Callable[[Key], Awaitable[float | None]]
    """Reconcile a key. Returns after how many seconds to do it again, None for not. Failures are tried again."""
    workers: int = 8
    clock: Callable[[], float] = time.monotonic
    _due: dict[Key, float] = field(default_factory=dict, init=False)
    _begun: set[Key] = field(default_factory=set, init=False)
    """Keys that were worked on."""
    _old: list[Entry] = field(default_factory=list, init=False)
    _new: list[Entry] = field(default_factory=list, init=False)
    """Heaps of those that were worked on when they were added, and of the others."""
    _turn: int = field(default=0, init=False)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count, init=False)
    _running: dict[Key, float] = field(default_factory=dict, init=False)
    _failures: dict[Key, int] = field(default_factory=dict, init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _ended: float = field(default=math.inf, init=False)
    """When the last reconcile ended, at first when the work began."""

    def add(self, key: Key, after: float = 0.0) -> None:
        """Reconcile a key `after` seconds from now, or earlier if it is due earlier already."""
        due = self.clock() + after
        known = self._due.get(key)
        if known is not None and known <= due:
            return
        self._due[key] = due
        if key not in self._running:  # else when that ends
            self._push(key, due)

    def drop(self, key: Key) -> None:
        """Forget a key and its failures: its object is gone."""
        self._due.pop(key, None)
        self._failures.pop(key, None)
        self._begun.discard(key)

    @property
    def depth(self) -> int:
        """Keys that are due and not being worked on."""
        now = self.clock()
        return sum(due <= now for due in self._due.values())

    @property
    def age(self) -> float:
        """Seconds that the oldest due key has waited."""
        now = self.clock()
        return max((now - due for due in self._due.values()), default=0.0) if self._due else 0.0

    @property
    def beginning(self) -> bool:
        """Whether what is new is due."""
        return self._is_due(self._new)

    @property
    def idle(self) -> bool:
        """Nothing is being worked on, and nothing is due."""
        return not self._running and self.depth == 0

    @property
    def stuck(self) -> str:
        """Why there is no progress; empty while there is, or nothing to do."""
        now = self.clock()
        hanging = [f"{namespace}/{name}" for (namespace, name), since in self._running.items() if _long(now - since)]
        if hanging:
            return f"a reconcile does not end: {', '.join(sorted(hanging))}"
        waited = min(now - self._ended, self.age)
        return f"nothing was reconciled for {waited:.0f} s, and {self.depth} objects wait" if _long(waited) else ""

    async def run(self) -> None:
        """Work for ever."""
        self._ended = self.clock()
        async with asyncio.TaskGroup() as group:
            for _ in range(self.workers):
                group.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            key = await self._next()
            self._running[key] = self.clock()
            try:
                again = await self.work(key)
            except Exception as error:
                failures = self._failures[key] = self._failures.get(key, 0) + 1
                wait = min(FIRST_BACKOFF * 2 ** min(failures - 1, 20), LAST_BACKOFF)
                wait = max(wait, getattr(error, "retry_after", None) or 0.0)  # the API server's own wish
                wait *= random.uniform(1.0, 1.4)  # noqa: S311  spreads load, is no secret
                namespace, name = key
                log.warning(
                    "reconcile failed; trying again",
                    namespace=namespace,
                    name=name,
                    error=str(error) or repr(error),
                    failures=failures,
                    after=round(wait, 1),
                    exc_info=not isinstance(error, ClusterError),
                )
                self.add(key, wait)
            else:
                self._failures.pop(key, None)
                if again is not None:
                    self.add(key, again)
            finally:
                del self._running[key]
                self._ended = self.clock()
                due = self._due.get(key)
                if due is not None:
                    self._push(key, due)

    def _push(self, key: Key, due: float) -> None:
        heapq.heappush(self._old if key in self._begun else self._new, (due, next(self._numbers), key))
        self._changed.set()

    async def _next(self) -> Key:
        """The next key that is due."""
        while True:
            self._changed.clear()
            self._turn += 1
            heaps = [self._new, self._old] if self._turn % TURNS == 0 else [self._old, self._new]
            for heap in heaps:
                found = self._taken(heap)
                if found is not None:
                    self._begun.add(found)
                    self._changed.set()  # another worker may find more
                    return found
            wait = min((heap[0][0] - self.clock() for heap in heaps if heap), default=None)
            with contextlib.suppress(TimeoutError):
                # Not `wait_for`: in Python 3.11 it loses a cancellation that comes together with the event.
                async with asyncio.timeout(wait):
                    await self._changed.wait()

    def _taken(self, heap: list[Entry]) -> Key | None:
        """The first key of a heap, taken out of it, if it is due."""
        if not self._is_due(heap):
            return None
        key = heapq.heappop(heap)[2]
        del self._due[key]
        return key

    def _is_due(self, heap: list[Entry]) -> bool:
        """Whether the first key of a heap is due. What was dropped, or is due at another time, leaves the heap."""
        while heap and (self._due.get(heap[0][2]) != heap[0][0] or heap[0][2] in self._running):
            heapq.heappop(heap)
        return bool(heap) and heap[0][0] <= self.clock()


def _long(seconds: float) -> bool:
    return seconds > STUCK_SECONDS
