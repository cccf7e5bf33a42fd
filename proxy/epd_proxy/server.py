"""The clients' side: HTTP/1.1 on a buffered protocol.

A head is read into one buffer that all connections share and goes through httptools, which refuses everything that
could be read in two ways (both lengths, repeated lengths, bare line feeds, folded headers). The body is then received
straight into the buffer that the request keeps, in whatever portions the kernel has, and not looked at on the way.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol

import httptools

from epd_proxy.errors import ProxyError
from epd_proxy.request import Request

MAX_HEAD: Final = 32 * 1024
MAX_HEADERS: Final = 128
_SCRATCH: Final = memoryview(bytearray(128 * 1024))
_DISCARD: Final = 64 * 1024 * 1024
_LINGER_SECONDS: Final = 2.0


class Service(Protocol):
    """What a connection needs from the rest."""

    clients: set[ClientConnection]
    head_seconds: float
    body_seconds: float
    keep_alive_seconds: float
    stall_seconds: float
    max_clients: int

    def now(self) -> float:
        """Return the loop's time in seconds."""

    def admit(self, request: Request, length: int | None) -> None:
        """Decide by the head; `length` is None for a chunked body. Raises ProxyError."""

    def buffer(self, length: int) -> bytearray:
        """Return the memory for the body."""

    def grow(self, request: Request, length: int) -> None:
        """Admit a chunked body that has reached `length` bytes. Raises ProxyError."""

    def handle(self, request: Request) -> None:
        """Serve a request whose body is there."""

    def finished(self, request: Request) -> None:
        """Take note of the end of a request."""


class ClientConnection(asyncio.BufferedProtocol):
    """One connection of a client."""

    __slots__ = (
        "_chunked",
        "_discard",
        "_filled",
        "_filling",
        "_headers",
        "_parser",
        "_partial",
        "_paused",
        "_url",
        "_whole",
        "deadline",
        "request",
        "service",
        "transport",
        "work_paused",
    )

    def __init__(self, service: Service) -> None:
        self.service = service
        self.transport: Any = None
        self.request: Request | None = None
        self.deadline = 0.0
        self._parser: httptools.HttpRequestParser | None = None
        self._headers: dict[bytes, bytes] = {}
        self._url = b""
        self._partial = b""
        self._filling: memoryview | None = None
        self._filled = 0
        self._chunked: bytearray | None = None
        self._whole = False
        self._discard = -1
        self._paused = False
        self.work_paused = False

    # ------------------------------------------------------------------ asyncio.BufferedProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport, unless there are too many already."""
        self.transport = transport
        clients = self.service.clients
        if len(clients) >= self.service.max_clients:
            self.transport.abort()
            return
        clients.add(self)
        self.deadline = self.service.now() + self.service.keep_alive_seconds

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002
        """Return where the next bytes go."""
        filling = self._filling
        return _SCRATCH if filling is None else filling[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take bytes that have come."""
        filling = self._filling
        if filling is None:
            self._receive(bytes(_SCRATCH[:nbytes]))
            return
        self._filled += nbytes
        if self._filled == len(filling):
            self._filling = None
            self._serve()
        else:
            self.deadline = self.service.now() + self.service.body_seconds

    def eof_received(self) -> bool:
        """Close: a client that sends no more is taken to have left."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Stop what was done for the client."""
        self.service.clients.discard(self)
        self._filling = None
        self.deadline = float("inf")
        request, self.request = self.request, None
        if request:
            request.leave()
            self.service.finished(request)

    def pause_writing(self) -> None:
        """The client reads too slowly: stop reading from the engine."""
        self.work_paused = True
        self.deadline = self.service.now() + self.service.stall_seconds
        if self.request and self.request.work:
            getattr(self.request.work, "pause", _nothing)()

    def resume_writing(self) -> None:
        """Go on."""
        self.work_paused = False
        self.deadline = float("inf")
        if self.request and self.request.work:
            getattr(self.request.work, "resume", _nothing)()

    # ------------------------------------------------------------------ heads

    def _receive(self, data: bytes) -> None:
        if self._discard >= 0:
            self._discard -= len(data)
            if self._discard < 0:
                self.transport.abort()
            return
        if self._chunked is not None:
            self._feed_chunked(data)
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
        parser = self._parser or httptools.HttpRequestParser(self)
        self._parser = None
        headers = self._headers = {}
        self._url = b""
        self._whole = False
        try:
            parser.feed_data(data[:end])
        except httptools.HttpParserUpgrade:
            pass
        except httptools.HttpParserError as error:
            self._refuse(ProxyError(400, f"the request is not HTTP/1.1: {error}", close=True))
            return
        if not self._url:
            self._refuse(ProxyError(400, "the request is not HTTP/1.1: it has no request line", close=True))
            return
        request = self.request = Request(self, parser.get_method(), self._url, headers)
        service = self.service
        request.started = service.now()
        request.keep_alive = parser.should_keep_alive()
        if parser.get_http_version() != "1.1":
            request.plain, request.keep_alive = True, False
        chunked = b"transfer-encoding" in headers
        length = 0 if chunked else int(headers.get(b"content-length", b"0"))
        self.deadline = float("inf")
        try:
            _check_head(request, headers, chunked)
            service.admit(request, None if chunked else length)
        except ProxyError as error:
            self._reject(request, error, length - (len(data) - end), chunked)
            return
        request.length = length
        if chunked:
            self._chunked = bytearray()
            self._parser = parser
            self._wait_for_body(headers)
            if len(data) > end:
                self._feed_chunked(data[end:])
        elif len(data) >= end + length:
            self._whole_body(request, parser, data, end)
        else:
            buffer = request.body = service.buffer(length)
            self._filled = len(data) - end
            buffer[: self._filled] = data[end:]
            self._filling = memoryview(buffer)[:length]
            self._wait_for_body(headers)

    def _whole_body(self, request: Request, parser: httptools.HttpRequestParser, data: bytes, end: int) -> None:
        """Serve a request that came in one piece, perhaps with the next one behind it."""
        stop = end + request.length
        if len(data) > stop:
            self._partial = data[stop:]
        request.body = body = data[end:stop]
        if body and request.keep_alive:
            parser.feed_data(body)
        if self._whole:
            self._parser = parser
        self._serve()

    def _wait_for_body(self, headers: dict[bytes, bytes]) -> None:
        self.deadline = self.service.now() + self.service.body_seconds
        if b"expect" in headers:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    # ------------------------------------------------------------------ chunked bodies

    def _feed_chunked(self, data: bytes) -> None:
        request, parser = self.request, self._parser
        if request is None or parser is None:
            return
        try:
            parser.feed_data(data)
            self.service.grow(request, len(self._chunked or b""))
        except httptools.HttpParserError as error:
            self._chunked = None
            request.fail(ProxyError(400, f"the request body is not well chunked: {error}", close=True))
            return
        except ProxyError as error:
            self._chunked = None
            self._reject(request, error, 0, chunked=True)
            return
        if self._whole:
            request.body = self._chunked or b""
            request.length = len(request.body)
            self._chunked = None
            self._parser = None  # whatever follows the body was dropped with it: no pipelining behind chunks
            request.keep_alive = request.keep_alive and not self._partial
            self._serve()
        else:
            self.deadline = self.service.now() + self.service.body_seconds

    # ------------------------------------------------------------------ httptools

    def on_url(self, url: bytes) -> None:
        """Keep the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, and note when one that matters is repeated."""
        name = name.lower()
        if name in self._headers and name in _SINGLE:
            self._headers[_REPEATED] = name
        self._headers[name] = value

    def on_body(self, data: bytes) -> None:
        """Keep a piece of a chunked body."""
        if self._chunked is not None:
            self._chunked += data

    def on_message_begin(self) -> None:
        """Note a second message behind a chunked body, which is not served."""
        if self._chunked is not None and self._whole:
            self._partial = b"\0"

    def on_message_complete(self) -> None:
        """Note the end of the body."""
        self._whole = True

    # ------------------------------------------------------------------ serving

    def _serve(self) -> None:
        request = self.request
        if request is None:
            return
        self.deadline = float("inf")
        try:
            self.service.handle(request)
        except ProxyError as error:
            request.fail(error)

    def request_done(self, request: Request) -> None:
        """Go on after an answer was written."""
        self.service.finished(request)
        if self.request is not request:
            return
        self.request = None
        self.deadline = self.service.now() + self.service.keep_alive_seconds
        if not request.keep_alive or self._discard >= 0:
            self._close()
            return
        if self._paused:
            self._paused = False
            self.transport.resume_reading()
        if self._partial and not self.transport.is_closing():
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
        request = self.request = Request(self, b"", b"", {})
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
        self.deadline = float("inf")
        request = self.request
        waiting = self._filling is not None or self._chunked is not None
        if request and waiting and not request.status:
            self._filling, self._chunked = None, None
            self._discard = MAX_HEAD
            request.fail(ProxyError(408, "the request body did not come in time", close=True))
        else:
            self.transport.abort()


_SINGLE: Final = frozenset((b"host", b"authorization", b"content-type", b"transfer-encoding", b"content-encoding"))


_REPEATED: Final = b""
"""The name, which no header can have, under which a repeated one is noted."""


def _check_head(request: Request, headers: dict[bytes, bytes], chunked: bool) -> None:
    if _REPEATED in headers:
        raise ProxyError(400, f"the header {headers[_REPEATED].decode()} is repeated", close=True)
    if len(headers) > MAX_HEADERS:
        raise ProxyError(431, f"the request has more than {MAX_HEADERS} headers", close=True)
    if chunked and (request.plain or headers[b"transfer-encoding"].lower() != b"chunked"):
        raise ProxyError(400, "of transfer codings only chunked is taken, and only in HTTP/1.1", close=True)
    if b"content-encoding" in headers and headers[b"content-encoding"].lower() != b"identity":
        raise ProxyError(415, "compressed request bodies are not taken", close=True)
    if b"host" not in headers and not request.plain:
        raise ProxyError(400, "the request has no Host header", close=True)


def _nothing() -> None:
    return
