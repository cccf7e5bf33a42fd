"""Whole answers of engines, for the stages before decode and for probes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from epd_proxy.chunks import dechunked
from epd_proxy.pool import EnginePool
from epd_proxy.upstream import EngineError, Head, Pieces, Sink, Trouble

MAX_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of an answer beyond which an engine is not believed."""


@dataclass(slots=True)
class Answer:
    """A whole answer, its body without framing."""

    status: int
    body: bytes
    head: Head


class Collector(Sink):
    """Gathers one answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.future: asyncio.Future[Answer] = loop.create_future()
        self._head: Head | None = None
        self._parts: list[bytes] = []
        self._size = 0

    def on_answer(self, head: Head, body: bytes, complete: bool) -> None:
        """Keep the head."""
        self._head = head
        self.on_body(body, complete)

    def on_body(self, data: bytes, complete: bool) -> None:
        """Keep the bytes; the last ones make the answer."""
        self._parts.append(data)
        self._size += len(data)
        head = self._head
        if head is None or self.future.done():
            return
        if complete:
            body = b"".join(self._parts)
            self.future.set_result(Answer(head.status, dechunked(body) if head.chunked else body, head))
        elif self._size > MAX_ANSWER:
            self.abort()
            self.future.set_exception(EngineError(Trouble.PROTOCOL, "an engine's answer is too long"))

    def on_failure(self, failure: EngineError) -> None:
        """Raise it where the answer is awaited."""
        if not self.future.done():
            self.future.set_exception(failure)


async def ask(pool: EnginePool, pieces: Pieces, seconds: float) -> Answer:
    """Send a request and return its whole answer within `seconds`, the connect not counted; raises EngineError.

    When the caller is cancelled, the engine sees its connection closed.
    """
    sink = Collector(pool.loop)
    pool.send(pieces, sink, seconds)
    try:
        return await sink.future
    except asyncio.CancelledError:
        sink.abort()
        raise
