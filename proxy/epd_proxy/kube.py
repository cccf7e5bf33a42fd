"""The Kubernetes API as far as the proxy needs it: list and watch with the service account's credentials."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import httptools

ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a pod finds its credentials."""

MAX_LINE: Final = 8 * 1024 * 1024
_CONNECT_SECONDS: Final = 10.0
_READ: Final = 64 * 1024


class KubeError(Exception):
    """The API server can't be asked, or refuses; `status` is 0 when there was no answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ApiServer:
    """Where the API server is and how to be trusted by it."""

    host: str
    port: int
    account: Path = ACCOUNT

    @classmethod
    def of_pod(cls) -> ApiServer:
        """Return the server of the cluster that this pod is in; raises KubeError outside of one."""
        host = os.environ.get("KUBERNETES_SERVICE_HOST")
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        if not host or not port.isdigit():
            raise KubeError(0, "KUBERNETES_SERVICE_HOST is not set: discovery works in a pod only")
        return cls(host, int(port))


class KubeClient:
    """One connection a request: lists are rare and watches are long."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def list(self, path: str, seconds: float, **query: str) -> dict[str, Any]:
        """Return a list; raises KubeError."""
        try:
            async with asyncio.timeout(seconds), self._get(path, query) as body:
                data = b"".join([piece async for piece in body])
            found: dict[str, Any] = json.loads(data)
        except (OSError, TimeoutError, ValueError) as error:
            raise KubeError(0, f"the API server's answer is lost: {error or 'no answer in time'}") from None
        return found

    async def watch(self, path: str, silence: float, **query: str) -> AsyncIterator[dict[str, Any]]:
        """Yield events until the server ends the watch; raises KubeError, also after `silence` seconds of it."""
        line = b""
        try:
            async with self._get(path, {**query, "watch": "true", "allowWatchBookmarks": "true"}) as body:
                pieces = aiter(body)
                while True:
                    async with asyncio.timeout(silence):
                        piece = await anext(pieces, None)
                    if piece is None:
                        return
                    *whole, line = (line + piece).split(b"\n")
                    if len(line) > MAX_LINE:
                        raise KubeError(0, "an event is too long")
                    for event in whole:
                        yield json.loads(event)
        except (OSError, TimeoutError, ValueError) as error:
            raise KubeError(0, f"the watch broke: {error or 'it went silent'}") from None

    @asynccontextmanager
    async def _get(self, path: str, query: dict[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        server = self._server
        context = ssl.create_default_context(cafile=str(server.account / "ca.crt"))
        token = (server.account / "token").read_text().strip()  # read each time: kubelet renews it
        async with asyncio.timeout(_CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(server.host, server.port, ssl=context)
        try:
            host = f"[{server.host}]" if ":" in server.host else server.host
            lines = (
                f"GET {path}?{urlencode(query)} HTTP/1.1",
                f"host: {host}:{server.port}",
                f"authorization: Bearer {token}",
                "accept: application/json",
                "user-agent: epd-proxy",
                "connection: close",
            )
            writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
            response = _Response(reader)
            status = await response.head()
            if status != 200:
                data = b"".join([piece async for piece in response.body()])
                raise KubeError(status, f"the API server says {status}: {data[:300].decode(errors='replace')}")
            yield response.body()
        finally:
            writer.close()


class _Response:
    """Reads one response."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._parser = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._has_head = self._whole = False

    async def head(self) -> int:
        """Return the status."""
        while not self._has_head:
            await self._more()
        return self._parser.get_status_code()

    async def body(self) -> AsyncIterator[bytes]:
        """Yield the body."""
        while True:
            pieces, self._pieces = self._pieces, []
            for piece in pieces:
                yield piece
            if self._whole:
                return
            await self._more()

    async def _more(self) -> None:
        data = await self._reader.read(_READ)
        if not data:
            raise OSError("the connection was closed")
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise OSError(f"not HTTP: {error}") from None

    def on_headers_complete(self) -> None:
        """Note that the status is there."""
        self._has_head = True

    def on_body(self, data: bytes) -> None:
        """Keep a piece."""
        self._pieces.append(data)

    def on_message_complete(self) -> None:
        """Note the end."""
        self._whole = True
