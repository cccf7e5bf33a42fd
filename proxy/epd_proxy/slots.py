"""A bounded number of requests at one encoder, and a bounded queue before it."""

from __future__ import annotations

import asyncio
from collections import deque


class QueueFullError(Exception):
    """There is no place left in the queue, or none became free in time."""


class Slots:
    """Places at one engine, given in the order in which they were asked for."""

    __slots__ = ("_waiting", "limit", "queue", "used")

    def __init__(self, limit: int, queue: int) -> None:
        self.limit = limit
        self.queue = queue
        self.used = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    async def take(self, seconds: float) -> None:
        """Wait for a place, at most `seconds`; raises QueueFullError."""
        if self.used < self.limit and not self._waiting:
            self.used += 1
            return
        if len(self._waiting) >= self.queue:
            raise QueueFullError("its queue is full")
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            async with asyncio.timeout(seconds):
                await future
        except BaseException as error:
            if future in self._waiting:
                self._waiting.remove(future)
            elif future.done() and not future.cancelled():
                self.give()  # the place came together with the end of the waiting
            if isinstance(error, TimeoutError):
                raise QueueFullError(f"no place became free within {seconds:g} s") from None
            raise

    def give(self) -> None:
        """Give a place back: to the first who waits, if any."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)
                return
        self.used -= 1
