"""Connections to one engine: a pool without an upper limit, since admission has limits of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from epd_proxy.gather import Gatherer
from epd_proxy.upstream import EngineConnection, EngineError, Head, Pieces, Sink, Trouble


@dataclass(slots=True)
class PoolTimes:
    """Seconds; shared by all pools, so that a new configuration reaches them."""

    connect: float
    keep_alive: float


class EnginePool:
    """Sends requests to one engine over connections that are used again.

    A pooled connection that turns out to be closed before any byte of an answer is replaced by a fresh one, once,
    without anybody's notice: the engine's keep-alive ran out while the request was on its way.
    """

    def __init__(self, host: str, port: int, role: str, times: PoolTimes) -> None:
        self.host = host
        self.port = port
        self.role = role
        self.times = times
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time
        self.gatherer = Gatherer(self.loop)
        self.heads: dict[bytes, Head] = {}
        """Heads of whole answers on connections that stay open, with what they say."""
        self.busy: set[EngineConnection] = set()
        self.opened = 0
        self.in_flight = 0
        self.stale = 0
        self.answered = 0
        self.on_failure: Callable[[EngineError], None] | None = None
        self._idle: list[EngineConnection] = []
        self._closed = False

    def send(self, pieces: Pieces, sink: Sink, seconds: float) -> None:
        """Send a request. The head of the answer must come within `seconds`, the connect not counted.

        The connection freed last is used, if it was free for less than half the engine's patience.
        """
        sink.pool = self
        self.in_flight += 1
        idle = self._idle
        if idle:
            connection = idle.pop()
            if connection.idle_since + self.times.keep_alive / 2 > self.now() and not connection.transport.is_closing():
                connection.start(pieces, sink, seconds)
                return
            connection.drop()
            while idle:  # the others are free for longer still
                idle.pop().drop()
        self._connect(pieces, sink, seconds)

    def send_fresh(self, pieces: Pieces, sink: Sink, seconds: float) -> None:
        """Send the request of a stale connection again; it is counted as in flight already."""
        self.stale += 1
        sink.connection = None
        self._connect(pieces, sink, seconds)

    def give(self, connection: EngineConnection) -> None:
        """Take back a connection that is free again."""
        self.answered += 1
        if self._closed or self.times.keep_alive <= 0:
            connection.drop()
            return
        connection.idle_since = self.now()
        self._idle.append(connection)

    def forget(self, connection: EngineConnection) -> None:
        """Drop a connection that was closed while it was free."""
        if connection in self._idle:
            self._idle.remove(connection)

    def failed(self, failure: EngineError) -> None:
        """Tell the owner that a request failed."""
        if self.on_failure:
            self.on_failure(failure)

    def sweep(self) -> None:
        """Fail what is overdue, close what was free for too long. Called about once a second."""
        now = self.now()
        for connection in [c for c in self.busy if c.deadline < now]:
            connection.expire()
        limit = now - self.times.keep_alive / 2
        while self._idle and self._idle[0].idle_since < limit:
            self._idle.pop(0).drop()

    def close(self) -> None:
        """Close what is free; what is busy ends with its request."""
        self._closed = True
        while self._idle:
            self._idle.pop().drop()

    def _connect(self, pieces: Pieces, sink: Sink, seconds: float) -> None:
        sink.connecting = self.loop.create_task(self._open(pieces, sink, seconds))

    async def _open(self, pieces: Pieces, sink: Sink, seconds: float) -> None:
        try:
            async with asyncio.timeout(self.times.connect):
                _, connection = await self.loop.create_connection(lambda: EngineConnection(self), self.host, self.port)
        except (OSError, TimeoutError) as error:
            sink.left()
            why = "no connection in time" if isinstance(error, TimeoutError) else (error.strerror or str(error))
            failure = EngineError(Trouble.CONNECT, f"the {self.role} engine cannot be reached: {why}")
            self.failed(failure)
            sink.on_failure(failure)
            return
        sink.connecting = None
        connection.start(pieces, sink, seconds)
