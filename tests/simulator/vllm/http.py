"""A small HTTP/1.1 server on the standard library alone, since the image has nothing else."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

HEAD_BYTES = 64 * 1024
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 500: "Internal Server Error"}


@dataclass(frozen=True)
class Request:
    """One request, read to its end."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Response:
    """One answer: a body, or events that are sent as they come."""

    status: int = 200
    body: bytes = b""
    kind: str = "application/json"
    events: AsyncIterator[bytes] | None = None
    headers: dict[str, str] = field(default_factory=dict)


def as_json(value: Any, status: int = 200) -> Response:
    """An answer that is JSON."""
    return Response(status, json.dumps(value).encode())


def failure(status: int, message: str) -> Response:
    """An error in vLLM's shape."""
    kind = {400: "BadRequestError", 401: "Unauthorized", 404: "NotFoundError"}.get(status, "InternalServerError")
    return as_json({"error": {"message": message, "type": kind, "param": None, "code": status}}, status)


Handler = Callable[[Request], Awaitable[Response]]


async def listen(handle: Handler, host: str | None, port: int) -> asyncio.Server:
    """Serve on an address, or on all. Raises OSError: the port is taken."""

    async def connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _read(reader)) is not None:
                await _write(writer, await handle(request))
        except (OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(connection, host, port, limit=HEAD_BYTES)


async def _read(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return Request(method, path, headers, await _chunks(reader))
    return Request(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while size := int((await reader.readline()).partition(b";")[0], 16):
        parts.append(await reader.readexactly(size))
        await reader.readexactly(2)
    await reader.readline()
    return b"".join(parts)


async def _write(writer: asyncio.StreamWriter, response: Response) -> None:
    lines = [f"HTTP/1.1 {response.status} {REASONS.get(response.status, 'Status')}"]
    lines += [f"content-type: {response.kind}"] if response.kind else []
    lines += [f"{name}: {value}" for name, value in response.headers.items()]
    if response.events is None:
        lines.append(f"content-length: {len(response.body)}")
        writer.write("\r\n".join((*lines, "", "")).encode() + response.body)
        await writer.drain()
        return
    writer.write("\r\n".join((*lines, "transfer-encoding: chunked", "", "")).encode())
    async for event in response.events:
        writer.write(b"%x\r\n%b\r\n" % (len(event), event))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()
