"""Bodies arrive whole however they are cut up on the way."""

from __future__ import annotations

import random
from typing import Any

import pytest

from epd_proxy.errors import ProxyError
from epd_proxy.heads import RequestHead
from epd_proxy.request import Kind, Request
from epd_proxy.server import ClientConnection


class Transport:
    """Takes writes, and hands bytes to whichever protocol is set."""

    def __init__(self) -> None:
        self.protocol: Any = None
        self.written = b""
        self.closed = False

    def set_protocol(self, protocol: Any) -> None:
        self.protocol = protocol

    def write(self, data: bytes) -> None:
        self.written += data

    def can_write_eof(self) -> bool:
        return False

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def receive(self, data: bytes) -> None:
        """Do as a transport does with either kind of protocol."""
        while data and not self.closed:
            if hasattr(self.protocol, "get_buffer"):
                buffer = self.protocol.get_buffer(-1)
                count = min(len(buffer), len(data))
                buffer[:count] = data[:count]
                self.protocol.buffer_updated(count)
                data = data[count:]
            else:
                self.protocol.data_received(data)
                return


class Service:
    """Keeps what is served."""

    clients: set[ClientConnection]
    head_seconds = body_seconds = keep_alive_seconds = stall_seconds = 10.0
    max_clients = 10

    def __init__(self) -> None:
        self.clients = set()
        self.heads: dict[bytes, RequestHead] = {}
        self.bodies: list[bytes] = []

    def now(self) -> float:
        return 0.0

    def admit(self, request: Request, length: int | None) -> Kind:
        return Kind.CHAT

    def buffer(self, length: int) -> bytearray:
        return bytearray(b"?" * (length + 100))

    def grow(self, request: Request, length: int) -> None:
        if length > 1_000_000:
            raise ProxyError(413, "too large")

    def handle(self, request: Request) -> None:
        self.bodies.append(bytes(request.body[: request.length]))
        request.reply(200, b"text/plain", b"")

    def finished(self, request: Request, now: float) -> None:
        pass


def connected() -> tuple[Transport, Service]:
    service, transport = Service(), Transport()
    connection = ClientConnection(service)
    transport.protocol = connection
    connection.connection_made(transport)  # type: ignore[arg-type]
    return transport, service


def framed(body: bytes, rng: random.Random) -> bytes:
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
    if rng.random() < 0.5:
        return head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    out = head + b"Transfer-Encoding: chunked\r\n\r\n"
    while body:
        size = rng.randrange(1, len(body) + 1)
        out += b"%x\r\n%b\r\n" % (size, body[:size])
        body = body[size:]
    return out + b"0\r\n\r\n"


@pytest.mark.parametrize("seed", range(300))
def test_random_cuts(seed: int) -> None:
    rng = random.Random(seed)
    transport, service = connected()
    body = rng.randbytes(rng.choice([0, 1, 50, 5000, 200_000]))
    raw = framed(body, rng)
    cuts = sorted(rng.randrange(len(raw) + 1) for _ in range(rng.randrange(8)))
    for start, end in zip([0, *cuts], [*cuts, len(raw)], strict=True):
        transport.receive(raw[start:end])
    assert service.bodies == [body]
    assert transport.written.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("seed", range(200))
def test_every_byte_by_itself(seed: int) -> None:
    rng = random.Random(seed)
    transport, service = connected()
    bodies = [rng.randbytes(rng.randrange(100)) for _ in range(2)]
    for body in bodies:
        for byte in framed(body, rng):
            transport.receive(bytes([byte]))
    assert service.bodies == bodies


def test_what_was_in_a_buffer_before_is_not_seen() -> None:
    transport, service = connected()
    transport.receive(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab")
    transport.receive(b"cde")
    assert service.bodies == [b"abcde"]
