"""The last stage: an engine's answer on its way to the client.

The bytes of a stream go through untouched, chunk framing included, and only in whole chunks: so a stream that breaks
can still be ended with an error event. A JSON answer is held until it is whole, if it is not large, so that an engine
that dies in it costs the client an error and not half a document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from epd_proxy.chunks import END, chunk, dechunked, last_boundary
from epd_proxy.errors import ProxyError, passed_on, sse_error
from epd_proxy.request import JSON, Request
from epd_proxy.upstream import EngineError, Head, Sink

if TYPE_CHECKING:
    from epd_proxy.core import Core
    from epd_proxy.endpoints import Endpoint

HOLD: Final = 1024 * 1024
"""Bytes of a JSON answer that are held until it is whole; also of a chunk that is not whole yet."""

_CHUNKED: Final = b"transfer-encoding: chunked"
_CLOSE_DELIMITED: Final = b"cache-control: no-store"
_STREAM: Final = b"text/event-stream"


class Relay(Sink):
    """Hands one answer to the client. Either `began` is called, once, or `failed`.

    Before that, nothing was sent to the client and another engine may be tried; after it, nothing can be.
    """

    _held = b""
    _written = False
    _chunked = False
    _torn = False
    _refusal = False
    _settled = False
    head: Head | None = None

    def __init__(self, core: Core, request: Request, engine: Endpoint) -> None:
        self.core = core
        self.request = request
        self.engine = engine

    def failed(self, error: Exception) -> None:
        """Take note that there is no answer, and why."""
        raise NotImplementedError

    def began(self) -> None:
        """Take note that the client's answer begins, or that it is whole."""

    # ------------------------------------------------------------------ Sink

    def on_answer(self, head: Head, body: bytes, complete: bool) -> None:
        """Begin the answer: a stream at once, JSON when it is whole."""
        self.head = head
        if head.status != 200:
            self._refusal = True
            self.on_body(body, complete)
            return
        request = self.request
        if complete and head.length >= 0:
            self._settle()
            connection = request.connection
            if connection:
                framing = b"content-length: %d" % head.length
                connection.transport.write(request.head(200, head.content_type or JSON, framing) + body)
                request.end()
        elif head.chunked:
            self._settle()
            self._begin_chunks(request, head, body, complete)
        else:
            self.on_body(body, complete)

    def on_body(self, data: bytes, complete: bool) -> None:
        """Pass on a part of the answer."""
        if self._written:
            self._more(data, complete)
            return
        self._held += data
        if self._refusal:
            self._refuse(complete)
        elif complete:
            self._settle()
            self._whole()
        elif len(self._held) > HOLD and self.head and self.head.length >= 0:
            self._settle()
            request = self.request
            if request.connection:
                self._written = True
                framing = b"content-length: %d" % self.head.length
                request.transport.write(request.head(200, self.head.content_type or JSON, framing) + self._held)
                self._held = b""
                self._slow_client()

    def on_failure(self, failure: EngineError) -> None:
        """Try elsewhere, if nothing was sent yet; else end the stream with an error."""
        if not self._settled:
            self._fail(failure)
            return
        self.core.metrics.broken_streams[()] += 1
        request = self.request
        if request.connection is None:
            return
        head = self.head
        request.keep_alive = False
        if not self._written:
            request.fail(ProxyError(502, str(failure)))
        elif head and self._chunked and not self._torn and head.content_type.startswith(_STREAM):
            event = sse_error(502, str(failure), request.path)
            request.transport.write(event if request.plain else chunk(event) + END)
            request.end()
        else:
            request.transport.abort()

    # ------------------------------------------------------------------ slow clients

    def pause(self) -> None:
        """Stop reading from the engine."""
        if self.connection and self._written:
            self.connection.pause()

    def resume(self) -> None:
        """Read from the engine again."""
        if self.connection and self._written:
            self.connection.resume(self.core.config.timeouts.idle_seconds)

    def _slow_client(self) -> None:
        if self.request.connection and self.request.connection.work_paused:
            self.pause()

    # ------------------------------------------------------------------ parts

    def _settle(self) -> None:
        self._settled = True
        self.core.metrics.upstream_requests[self.engine.ok_labels] += 1
        self.began()

    def _fail(self, error: Exception) -> None:
        self._settled = True
        self.failed(error)

    def _begin_chunks(self, request: Request, head: Head, body: bytes, complete: bool) -> None:
        if request.connection is None:
            return
        self._written = self._chunked = True
        request.first_byte = self.core.now()
        start = request.head(200, head.content_type or JSON, _CLOSE_DELIMITED if request.plain else _CHUNKED)
        request.transport.write(start + self._whole_chunks(body, complete) if body else start)
        if complete:
            request.end()
            return
        if self.connection:
            self.connection.extend(self.core.config.timeouts.idle_seconds)
        self._slow_client()

    def _more(self, data: bytes, complete: bool) -> None:
        request = self.request
        connection = request.connection
        if connection is None:
            return
        if self._chunked:
            data = self._whole_chunks(data, complete)
        if data:
            connection.transport.write(data)
        if complete:
            request.end()
        elif self.connection and not connection.work_paused:
            self.connection.extend(self.core.config.timeouts.idle_seconds)

    def _whole_chunks(self, data: bytes, complete: bool) -> bytes:
        """Return the whole chunks of what is held and `data`, and hold the rest."""
        if self._torn:
            return data
        if self._held:
            data = self._held + data
            self._held = b""
        if not complete and not (self.connection and self.connection.at_boundary(data)):
            cut = last_boundary(data)
            if len(data) - cut > HOLD and not self.request.plain:
                self._torn = True
                return data
            self._held = data[cut:]
            data = data[:cut]
        return dechunked(data) if self.request.plain else data

    def _whole(self) -> None:
        """Answer with a body whose length was not known, now that it is whole."""
        if self.head:
            self.request.reply(200, self.head.content_type or JSON, self._held)

    def _refuse(self, complete: bool) -> None:
        head = self.head
        if head is None or not (complete or len(self._held) > HOLD):
            return
        if not complete:
            self.abort()
        body = dechunked(self._held) if head.chunked and complete else self._held
        error = passed_on(head.status, body, "decode")
        if head.retry_after.isdigit():
            error.retry_after = int(head.retry_after)
        self._fail(error)
