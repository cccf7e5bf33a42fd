"""A strict HTTP client that reads step by step, so that a test can leave, stall or look in between."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import Any

CHAT = "/v1/chat/completions"


@dataclass
class Response:
    """A response, complete or not."""

    status: int
    headers: dict[str, str]
    body: bytes
    complete: bool
    """The body ended as its framing promised."""

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode(errors="replace")

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[str]:
        """The data of each server-sent event."""
        return [e.removeprefix("data:").strip() for e in self.text.split("\n\n") if e.startswith("data:")]

    @property
    def error(self) -> dict[str, Any]:
        """The error object, its shape checked."""
        error = self.json["error"]
        assert isinstance(error["message"], str)
        assert isinstance(error["type"], str)
        assert "code" in error
        return dict(error)


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.received = b""
        self.ended = False

    @classmethod
    async def connect(cls, port: int) -> Client:
        """Connect to the loopback."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=1 << 20))

    def send(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> None:
        """Send a request."""
        lines = {"Host": "proxy", **(headers or {})}
        if body is not None and "Transfer-Encoding" not in lines:
            lines.setdefault("Content-Type", "application/json")
            lines.setdefault("Content-Length", str(len(body)))
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items()) + "\r\n"
        self.writer.write(head.encode() + (body or b""))

    async def read_until(self, needle: bytes, count: int = 1) -> None:
        """Read until the bytes have come so many times."""
        while self.received.count(needle) < count:
            assert await self.some(), f"ended before {needle!r}: {self.received[-200:]!r}"

    async def some(self) -> bool:
        """Read what is there next; False at the end."""
        try:
            data = await self.reader.read(1 << 18)
        except ConnectionError:
            data = b""
        self.received += data
        self.ended = not data
        return bool(data)

    async def response(self) -> Response:
        """Read a response, and leave what follows it for the next."""
        while True:
            found = self._parsed()
            if found:
                response, rest = found
                if response.complete:
                    self.received = rest
                    return response
            if self.ended or not await self.some():
                if found:
                    return found[0]
                if not self._parsed():
                    raise ConnectionError(f"closed without a response: {self.received[:200]!r}")

    def _parsed(self) -> tuple[Response, bytes] | None:
        rest = self.received
        while True:
            head, blank, rest = rest.partition(b"\r\n\r\n")
            if not blank:
                return None
            lines = head.decode("latin-1").split("\r\n")
            status = int(lines[0].split()[1])
            if status != 100:
                break
        headers = {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        if headers.get("transfer-encoding") == "chunked":
            return self._chunked(status, headers, rest)
        length = int(headers["content-length"]) if "content-length" in headers else None
        if length is None:
            return Response(status, headers, rest, self.ended), b""
        return Response(status, headers, rest[:length], len(rest) >= length), rest[length:]

    @staticmethod
    def _chunked(status: int, headers: dict[str, str], rest: bytes) -> tuple[Response, bytes]:
        body = b""
        while True:
            size, newline, after = rest.partition(b"\r\n")
            if not newline:
                return Response(status, headers, body, False), b""
            length = int(size, 16)
            if length == 0:
                return Response(status, headers, body, after.startswith(b"\r\n")), after[2:]
            body += after[:length]
            if len(after) < length + 2:
                return Response(status, headers, body, False), b""
            rest = after[length + 2 :]

    async def close(self) -> None:
        """Leave."""
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


async def request(
    port: int, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Response:
    """Send one request on a connection of its own; `body` is bytes, or data to be written as JSON."""
    client = await Client.connect(port)
    try:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        client.send(method, path, data, headers)
        async with asyncio.timeout(20):
            return await client.response()
    finally:
        await client.close()


async def post(port: int, body: Any, headers: dict[str, str] | None = None, path: str = CHAT) -> Response:
    """POST one request."""
    return await request(port, "POST", path, body, headers)
