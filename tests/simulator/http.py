"""A small HTTP/1.1 server that can misbehave on purpose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httptools


class Exchange:
    """One request, and the means to answer it well or badly."""

    def __init__(self, connection: Connection, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        self.connection = connection
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.state = "open"
        """open, answered, closed (by the simulator) or aborted (by the peer)."""
        self.task: asyncio.Task[None] | None = None

    @property
    def open(self) -> bool:
        """Whether the peer still waits."""
        return self.state == "open"

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        if self.open:
            self.connection.transport.write(data)

    def answer(self, status: int, body: bytes, kind: str = "application/json", length: int | None = None) -> None:
        """Send a whole response, or one whose announced length is another."""
        size = len(body) if length is None else length
        head = f"HTTP/1.1 {status} Status\r\ncontent-type: {kind}\r\ncontent-length: {size}\r\n\r\n"
        self.write(head.encode() + body)
        if length is None:
            self.done()

    def begin_chunks(self, kind: str = "text/event-stream; charset=utf-8") -> None:
        """Send the head of a stream."""
        self.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode())

    def chunk(self, data: bytes) -> None:
        """Send one chunk; an empty one ends the stream."""
        self.write(b"%x\r\n%b\r\n" % (len(data), data))
        if not data:
            self.done()

    def done(self) -> None:
        """The answer is whole."""
        if self.open:
            self.state = "answered"
            self.connection.next()

    def close(self) -> None:
        """Close the connection, whatever was sent."""
        if self.open:
            self.state = "closed"
            self.connection.transport.abort()


class Connection(asyncio.Protocol):
    """One connection of a peer."""

    def __init__(self, handle: Callable[[Exchange], None], connections: set[Connection]) -> None:
        self.transport: Any = None
        self.served = 0
        self.exchange: Exchange | None = None
        self.room = asyncio.Event()
        self.room.set()
        self._handle = handle
        self._connections = connections
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self.transport = transport
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the peer has gone."""
        self._connections.discard(self)
        self.room.set()
        exchange = self.exchange
        if exchange and exchange.open:
            exchange.state = "aborted"
            if exchange.task:
                exchange.task.cancel()

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.abort()

    def pause_writing(self) -> None:
        """The peer is slow."""
        self.room.clear()

    def resume_writing(self) -> None:
        """The peer reads again."""
        self.room.set()

    def on_message_begin(self) -> None:
        """Start a request."""
        self._url, self._headers, self._body = b"", {}, []

    def on_url(self, url: bytes) -> None:
        """Keep the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self._headers[name.decode().lower()] = value.decode()

    def on_body(self, data: bytes) -> None:
        """Keep a piece of the body."""
        self._body.append(data)

    def on_message_complete(self) -> None:
        """Serve."""
        method = self._parser.get_method().decode()
        self.exchange = Exchange(self, method, self._url.decode(), self._headers, b"".join(self._body))
        self._handle(self.exchange)

    def next(self) -> None:
        """Be ready for the next request."""
        self.served += 1
        self.exchange = None
