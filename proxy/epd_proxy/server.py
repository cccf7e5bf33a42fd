"""The clients' side: HTTP/1.1.

A body that is not there yet is received by another protocol, straight into the buffer that the request keeps, in
whatever portions the kernel has, and not looked at on the way.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

import httptools

from epd_proxy import log
from epd_proxy.errors import ProxyError
from epd_proxy.heads import MAX_HEAD, NO_HEAD, RequestHead, request_head
from epd_proxy.request import Kind, Request

_DISCARD: Final = 64 * 1024 * 1024
_LINGER_SECONDS: Final = 2.0
_NEVER: Final = float("inf")


class Service(Protocol):
    """What a connection needs from the rest."""

    clients: set[ClientConnection]
    heads: dict[bytes, RequestHead]
    """Heads that came before, with what they say."""
    head_seconds: float
    body_seconds: float
    keep_alive_seconds: float
    stall_seconds: float
    max_clients: int

    def now(self) -> float:
        """Return the loop's time in seconds."""

    def admit(self, request: Request, length: int | None) -> Kind:
        """Decide by the head; `length` is None for a chunked body. Raises ProxyError."""

    def buffer(self, length: int) -> bytearray:
        """Return the memory for the body."""

    def grow(self, request: Request, length: int) -> None:
        """Admit a chunked body that has reached `length` bytes. Raises ProxyError."""

    def handle(self, request: Request) -> None:
        """Serve a request whose body is there. Raises ProxyError."""

    def finished(self, request: Request, now: float) -> None:
        """Take note of the end of a request, and give back what it held."""


class ClientConnection(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.transport: Any = None
        self.request: Request | None = None
        self.deadline = 0.0
        self.work_paused = False
        self._body: Body | None = None
        self._partial = b""
        self._discard = -1
        self._paused = False

    # ------------------------------------------------------------------ asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, unless there are too many already."""
        self.transport = transport
        clients = self.service.clients
        if len(clients) >= self.service.max_clients:
            self.transport.abort()
            return
        clients.add(self)
        self.deadline = self.service.now() + self.service.keep_alive_seconds

    def data_received(self, data: bytes) -> None:
        """Take bytes: mostly a whole request."""
        if self.request is None and not self._partial and self._discard < 0:
            end = data.find(b"\r\n\r\n")
            if 0 < end <= MAX_HEAD:
                self._head(data, end + 4)
                return
        self._receive(data)

    def eof_received(self) -> bool:
        """Close: a client that sends no more is taken to have left."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Stop what was done for the client."""
        self.service.clients.discard(self)
        self._body = None
        self.deadline = _NEVER
        request, self.request = self.request, None
        if request:
            request.leave()
            self.service.finished(request, self.service.now())

    def pause_writing(self) -> None:
        """The client reads too slowly: stop reading from the engine."""
        self.work_paused = True
        self.deadline = self.service.now() + self.service.stall_seconds
        if self.request and self.request.work:
            self.request.work.pause()

    def resume_writing(self) -> None:
        """Go on."""
        self.work_paused = False
        self.deadline = _NEVER
        if self.request and self.request.work:
            self.request.work.resume()

    # ------------------------------------------------------------------ heads

    def _receive(self, data: bytes) -> None:
        """Take bytes that are not simply a whole head and more."""
        if self._discard >= 0:
            self._discard -= len(data)
            if self._discard < 0:
                self.transport.abort()
            return
        if isinstance(self._body, ChunkedBody):
            self._more_chunks(self._body, data)
            return
        if self._partial:
            data = self._partial + data
            self._partial = b""
        if self.request is not None:  # pipelined: it waits for the answer in progress
            self._partial = data
            if len(data) > MAX_HEAD and not self._paused:
                self._paused = True
                self.transport.pause_reading()
            return
        end = data.find(b"\r\n\r\n")
        if 0 <= end <= MAX_HEAD:
            if end:
                self._head(data, end + 4)
            else:
                self._receive(data[2:])  # an empty line before the request line
        elif len(data) > MAX_HEAD:
            self._refuse(ProxyError(431, f"the request head has more than {MAX_HEAD} bytes", close=True))
        else:
            self._partial = data
            self.deadline = min(self.deadline, self.service.now() + self.service.head_seconds)

    def _head(self, data: bytes, end: int) -> None:
        service = self.service
        try:
            head = request_head(data[:end], service.heads)
        except ProxyError as error:
            self._refuse(error)
            return
        request = self.request = Request(self, head)
        request.started = service.now()
        self.deadline = _NEVER
        stop = end + head.length
        try:
            if head.refusal:
                raise head.refusal
            request.kind = service.admit(request, None if head.chunked else head.length)
        except ProxyError as error:
            self._reject(request, error, stop - len(data), head.chunked)
            return
        if head.chunked:
            self._expect_chunks(request, data, end)
        elif len(data) < stop:
            self._expect_body(request, head.length, data[end:])
        else:
            request.length = head.length
            request.body = data[end:stop]
            if len(data) > stop:
                self._partial = data[stop:]
            self._serve(request)

    # ------------------------------------------------------------------ bodies

    def _expect_body(self, request: Request, length: int, start: bytes) -> None:
        request.length = length
        request.body = buffer = self.service.buffer(length)
        buffer[: len(start)] = start
        self._body = SizedBody(self, memoryview(buffer)[:length], len(start))
        self._wait_for_body(request)
        self.transport.set_protocol(self._body)

    def _expect_chunks(self, request: Request, data: bytes, end: int) -> None:
        self._body = body = ChunkedBody(data[:end])
        self._wait_for_body(request)
        if len(data) > end:
            self._more_chunks(body, data[end:])

    def _wait_for_body(self, request: Request) -> None:
        self.deadline = self.service.now() + self.service.body_seconds
        if b"expect" in request.headers:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def body_received(self) -> None:
        """Serve the request whose body is there."""
        self._body = None
        self.transport.set_protocol(self)
        if self.request:
            self._serve(self.request)

    def _more_chunks(self, body: ChunkedBody, data: bytes) -> None:
        request = self.request
        if request is None:
            return
        try:
            body.feed(data)
            self.service.grow(request, len(body.content))
        except httptools.HttpParserError as error:
            self._body = None
            self._reject(
                request, ProxyError(400, f"the body is not well chunked: {error}", close=True), 0, chunked=True
            )
        except ProxyError as error:
            self._body = None
            self._reject(request, error, 0, chunked=True)
        else:
            self.deadline = self.service.now() + self.service.body_seconds
            if body.whole:
                self._body = None
                request.body = body.content
                request.length = len(body.content)
                request.keep_alive = request.keep_alive and not body.more
                self._serve(request)

    # ------------------------------------------------------------------ serving

    def _serve(self, request: Request) -> None:
        self.deadline = _NEVER
        try:
            self.service.handle(request)
        except ProxyError as error:
            request.fail(error)
        except Exception:
            log.exception("request failed", request=request.id.decode("latin-1"))
            request.fail(ProxyError(500, "the proxy failed; its log says how"))

    def request_done(self, request: Request) -> None:
        """Go on after an answer was written."""
        service = self.service
        now = service.now()
        service.finished(request, now)
        if self.request is not request:
            return
        self.request = None
        self.deadline = now + service.keep_alive_seconds
        if not request.keep_alive or self._discard >= 0:
            self._close()
        elif self._partial or self._paused:
            if self._paused:
                self._paused = False
                self.transport.resume_reading()
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        if self._partial and self.request is None and not self.transport.is_closing():
            self._receive(b"")

    def _reject(self, request: Request, error: ProxyError, left: int, chunked: bool) -> None:
        """Answer before the body has come. What still comes is thrown away for a while, lest it reset the answer."""
        if chunked or left > 0 or b"expect" in request.headers:
            error.close = True
            self._discard = _DISCARD
        request.fail(error)

    def _refuse(self, error: ProxyError) -> None:
        """Answer what is not even a request."""
        self._partial = b""
        request = self.request = Request(self, NO_HEAD)
        request.started = self.service.now()
        self._discard = MAX_HEAD
        request.fail(error)

    def _close(self) -> None:
        if self._discard >= 0 and self.transport.can_write_eof():
            self.transport.write_eof()
            self.deadline = self.service.now() + _LINGER_SECONDS
        else:
            self.transport.close()

    def close_if_idle(self) -> None:
        """Close a connection that has no request; called in a drain."""
        if self.request is None and not self._partial:
            self.transport.close()

    def expire(self) -> None:
        """Close a connection whose deadline has passed, with an answer if a request was on its way."""
        self.deadline = _NEVER
        request = self.request
        if request and self._body and not request.status:
            self._body = None
            self.transport.set_protocol(self)
            self._discard = MAX_HEAD
            request.fail(ProxyError(408, "the request body did not come in time", close=True))
        else:
            self.transport.abort()


class SizedBody(asyncio.BufferedProtocol):
    """Receives a body of known length in place of its connection."""

    def __init__(self, connection: ClientConnection, view: memoryview, filled: int) -> None:
        self._connection = connection
        self._view = view
        self._filled = filled

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return where the next bytes go."""
        return self._view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take note of bytes that have come."""
        self._filled += nbytes
        connection = self._connection
        if self._filled == len(self._view):
            self._view = memoryview(b"")
            connection.body_received()
        else:
            connection.deadline = connection.service.now() + connection.service.body_seconds

    def eof_received(self) -> bool:
        """Close."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the connection."""
        self._view = memoryview(b"")
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        """Nothing is written meanwhile but interim answers."""

    def resume_writing(self) -> None:
        """Nothing is written meanwhile but interim answers."""


class ChunkedBody:
    """Gathers a body of unknown length."""

    def __init__(self, head: bytes) -> None:
        self.content = bytearray()
        self.whole = False
        self.more = False
        """Something came behind the body. It is not served: no pipelining behind chunks."""
        self._parser = httptools.HttpRequestParser(self)
        self._parser.feed_data(head)

    def feed(self, data: bytes) -> None:
        """Take bytes; raises HttpParserError."""
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        """Keep a piece."""
        if not self.whole:
            self.content += data

    def on_message_begin(self) -> None:
        """Note a second message."""
        self.more = self.whole

    def on_message_complete(self) -> None:
        """Note the end."""
        self.whole = True


Body = SizedBody | ChunkedBody
