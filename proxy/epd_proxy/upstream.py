"""HTTP/1.1 connections to engines: one request at a time, answers handed on in the bytes they came in.

A `Sink` takes one answer. httptools follows the framing, so that the end of an answer is known without decoding it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import httptools

from epd_proxy import log
from epd_proxy.gather import BULK, MOMENT
from epd_proxy.heads import keep

if TYPE_CHECKING:
    from epd_proxy.pool import EnginePool

Pieces = Sequence[bytes | memoryview]

MAX_HEAD: Final = 64 * 1024


class Trouble(Enum):
    """Why there is no answer, or no whole one."""

    CONNECT = "connect"
    CLOSED = "closed"
    BROKEN = "broken"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol"


class EngineError(Exception):
    """An engine gave no answer (or no whole one: BROKEN); the message names the engine."""

    def __init__(self, trouble: Trouble, message: str) -> None:
        super().__init__(message)
        self.trouble = trouble


@dataclass(slots=True)
class Head:
    """A response head. `length` is -1 without Content-Length. Not changed once it is read: answers share it."""

    status: int
    content_type: bytes = b""
    length: int = -1
    chunked: bool = False
    retry_after: bytes = b""


class Sink:
    """Takes the answer to one request. Every call happens on the event loop's thread."""

    pool: EnginePool | None = None
    connection: EngineConnection | None = None
    connecting: asyncio.Task[None] | None = None

    def on_answer(self, head: Head, body: bytes, complete: bool) -> None:
        """Take the head and the first bytes of the body, framing included."""
        raise NotImplementedError

    def on_body(self, data: bytes, complete: bool) -> None:
        """Take more of the body, framing included."""
        raise NotImplementedError

    def on_failure(self, failure: EngineError) -> None:
        """Take the news that no more will come. Called at most once, and not after a complete answer."""
        raise NotImplementedError

    def abort(self) -> None:
        """Give the request up: the engine sees its connection closed. Nothing is called any more."""
        if self.connection:
            self.connection.drop()
        elif self.connecting:
            self.connecting.cancel()
        self.left()

    def left(self) -> None:
        """Count the request as no longer at its engine."""
        if self.pool:
            self.pool.in_flight -= 1
            self.pool = None
        self.connection = self.connecting = None


class EngineConnection(asyncio.Protocol):
    """One connection. Between requests it lies in its pool."""

    __slots__ = (
        "_complete",
        "_extra",
        "_head",
        "_in_body",
        "_keep",
        "_parser",
        "_partial",
        "_paused",
        "_pieces",
        "_read_at",
        "_resting",
        "_seconds",
        "deadline",
        "idle_since",
        "in_chunk",
        "pool",
        "served",
        "sink",
        "transport",
    )

    def __init__(self, pool: EnginePool) -> None:
        self.pool = pool
        self.transport: Any = None
        self.sink: Sink | None = None
        self.deadline = 0.0
        self.idle_since = 0.0
        self.served = 0
        self.in_chunk = False
        self._parser = httptools.HttpResponseParser(self)
        self._head: Head | None = None
        self._in_body = self._complete = self._extra = self._keep = self._paused = self._resting = False
        self._read_at = 0.0
        self._partial = b""
        self._pieces: Pieces = ()
        self._seconds = 0.0

    # ------------------------------------------------------------------ requests

    def start(self, pieces: Pieces, sink: Sink, seconds: float) -> None:
        """Send a request; its head must come within `seconds`."""
        self.sink = sink
        sink.connection = self
        self._pieces = pieces
        self._seconds = seconds
        self._head = None
        self._in_body = self._complete = False
        self.deadline = self.pool.now() + seconds
        self.pool.busy.add(self)
        if len(pieces) == 1:
            self.transport.write(pieces[0])
        else:
            self.transport.writelines(pieces)

    def extend(self, seconds: float) -> None:
        """Let the next bytes come within `seconds`."""
        self.deadline = self.pool.now() + seconds

    def at_boundary(self, data: bytes) -> bool:
        """Say whether what was received so far, ending with `data`, ends with a whole chunk."""
        return not self.in_chunk and data.endswith(b"\r\n")

    def pause(self) -> None:
        """Read no more until `resume`: the client is slower than the engine."""
        self._paused = True
        self.transport.pause_reading()
        self.deadline = float("inf")

    def resume(self, seconds: float) -> None:
        """Read on."""
        self._paused = False
        self.extend(seconds)
        if not self._resting:
            self.transport.resume_reading()

    def rested(self) -> None:
        """Read on after a rest, unless the client is slow."""
        self._resting = False
        self._read_at = self.pool.now()
        if not self._paused and not self.transport.is_closing():
            self.transport.resume_reading()

    def drop(self) -> None:
        """Close at once; what was still to be sent is not sent."""
        self.sink = None
        self._pieces = ()
        self.pool.busy.discard(self)
        if self.transport:
            self.transport.abort()

    def expire(self) -> None:
        """Fail the request because its deadline has passed."""
        self._fail(Trouble.TIMEOUT, "did not answer in time")

    # ------------------------------------------------------------------ asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self.transport = transport
        self.pool.opened += 1

    def data_received(self, data: bytes) -> None:
        """Follow the framing and hand the bytes on."""
        sink = self.sink
        if sink is None:
            self.drop()  # nobody asked
            return
        try:
            if not self._in_body:
                self._begin(sink, data)
                return
            self._parser.feed_data(data)
            if self._complete:
                self._finish(sink)
            elif len(data) < BULK and self._head and self._head.chunked:
                self._pace()
            sink.on_body(data, self._complete)
        except httptools.HttpParserError as error:
            self._fail(Trouble.PROTOCOL, f"sent what is not HTTP: {error}")
        except Exception:
            log.exception("answer failed", role=self.pool.role)
            self._fail(Trouble.PROTOCOL, "sent what this proxy failed at")

    def _pace(self) -> None:
        """Rest where a stream comes in a burst."""
        now = self.pool.now()
        burst = now - self._read_at < MOMENT
        self._read_at = now
        if burst and not self._resting:
            self._resting = True
            self.transport.pause_reading()
            self.pool.gatherer.rest(self)

    def _begin(self, sink: Sink, data: bytes) -> None:
        """Take bytes before the end of the head, or with it. Raises HttpParserError."""
        if self._partial:
            data = self._partial + data
        end = data.find(b"\r\n\r\n")
        if end < 0:
            self._partial = data
            if len(data) > MAX_HEAD:
                self._fail(Trouble.PROTOCOL, "sent a head that is too long")
            return
        self._partial = b""
        known = self.pool.heads.get(data[:end])
        whole = known is not None and len(data) == end + 4 + known.length
        if whole:
            self._head = known  # it came before, and the answer is in one piece: the parser need not see it
            self._complete = self._keep = True
        else:
            self._parser.feed_data(data)
        head = self._head
        if head is None or head.status < 200:
            self._fail(Trouble.PROTOCOL, "sent no final response")
            return
        self._in_body = True
        self._pieces = ()
        if self._complete:
            if not whole and self._keep and not self._extra and len(data) == end + 4 + head.length:
                keep(self.pool.heads, data[:end], head)
            self._finish(sink)
        sink.on_answer(head, data[end + 4 :], self._complete)

    def eof_received(self) -> bool:
        """Close; `connection_lost` says what that means."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request, unless its body ends with the connection."""
        self.pool.opened -= 1
        sink = self.sink
        if sink is None:
            self.pool.forget(self)
            return
        head = self._head
        if exc is None and self._in_body and head and head.length < 0 and not head.chunked:
            self._complete = True  # a body that ends with its connection
            self._detach(sink)
            sink.on_body(b"", True)
            return
        self._fail(Trouble.BROKEN if self._in_body else Trouble.CLOSED, "closed the connection")

    # ------------------------------------------------------------------ httptools

    def on_message_begin(self) -> None:
        """Note what comes behind the answer."""
        self._extra = self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the headers that matter."""
        if self._in_body or self._extra:
            return  # a trailer, or of another answer
        head = self._head
        if head is None:
            head = self._head = Head(0)
        lower = name.lower()
        if lower == b"content-type":
            head.content_type = value
        elif lower == b"content-length":
            head.length = int(value)
        elif lower == b"transfer-encoding":
            head.chunked = value.lower() == b"chunked"
        elif lower == b"retry-after":
            head.retry_after = value

    def on_headers_complete(self) -> None:
        """Take the status."""
        if self._extra:
            return
        if self._head is None:
            self._head = Head(0)
        self._head.status = self._parser.get_status_code()
        self._keep = self._parser.should_keep_alive()

    def on_chunk_header(self) -> None:
        """Note that a chunk is open."""
        self.in_chunk = True

    def on_chunk_complete(self) -> None:
        """Note that no chunk is open."""
        self.in_chunk = False

    def on_message_complete(self) -> None:
        """Note that the answer is whole."""
        self._complete = True

    # ------------------------------------------------------------------ ends

    def _finish(self, sink: Sink) -> None:
        """Take the connection away from an answer that is complete."""
        keep = self._keep and not self._extra and not self.transport.get_write_buffer_size()
        self._detach(sink)
        self.served += 1
        if keep:
            self.pool.give(self)
        else:
            self.transport.abort()  # what is still to be sent must not outlive its request's buffer

    def _detach(self, sink: Sink) -> None:
        self.sink = None
        self.pool.busy.discard(self)
        sink.left()

    def _fail(self, trouble: Trouble, what: str) -> None:
        sink, pieces = self.sink, self._pieces
        stale = trouble is Trouble.CLOSED and self.served > 0 and not self._partial
        self.drop()
        if sink is None:
            return
        pool = self.pool
        if stale:
            pool.send_fresh(pieces, sink, self._seconds)
            return
        sink.left()
        failure = EngineError(trouble, f"the {pool.role} engine {what}")
        pool.failed(failure)
        sink.on_failure(failure)
