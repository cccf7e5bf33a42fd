"""Request heads: taken apart by httptools, and only once where equal bytes come again. Pure.

httptools refuses everything that could be read in two ways (both lengths, repeated lengths, bare line feeds, folded
headers). A client sends the same head with nearly every request of the same length, so what a head says is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeVar

import httptools

from epd_proxy.errors import ProxyError

MAX_HEAD: Final = 32 * 1024
MAX_HEADERS: Final = 128

KEPT: Final = 512
"""Heads that are kept; one more and all are forgotten."""
_KEPT_SIZE: Final = 2048
"""Bytes of the longest head that is kept."""

_SINGLE: Final = frozenset((b"host", b"authorization", b"content-type", b"transfer-encoding", b"content-encoding"))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What the head of a request says."""

    method: bytes
    path: bytes
    """Without a query."""
    headers: dict[bytes, bytes]
    """By name in lower case; the last of those that are repeated. Not to be changed: requests share it."""
    length: int
    """Content-Length; 0 without one."""
    chunked: bool
    plain: bool
    """HTTP/1.0: no chunks."""
    keep_alive: bool
    refusal: ProxyError | None = None
    """Why it is HTTP and yet not taken."""


NO_HEAD: Final = RequestHead(b"", b"", {}, 0, chunked=False, plain=False, keep_alive=True)
"""Of what is not even a request."""


def keep(known: dict[bytes, T], head: bytes, meaning: T) -> None:
    """Keep what a head says. What fills up forgets all: that costs one parse of each that comes again."""
    if len(head) <= _KEPT_SIZE:
        if len(known) >= KEPT:
            known.clear()
        known[head] = meaning


def request_head(head: bytes, known: dict[bytes, RequestHead]) -> RequestHead:
    """Return what a head says, which ends with its empty line. Raises ProxyError where it is not HTTP/1."""
    found = known.get(head)
    if found is None:
        found = _Reader().read(head)
        if found.refusal is None:
            keep(known, head, found)
    return found


class _Reader:
    """Reads one head."""

    def __init__(self) -> None:
        self._url = b""
        self._headers: dict[bytes, bytes] = {}
        self._repeated = b""
        self._keep_alive = True
        self._parser = httptools.HttpRequestParser(self)

    def read(self, head: bytes) -> RequestHead:
        try:
            self._parser.feed_data(head)
        except httptools.HttpParserUpgrade:
            pass  # what else a client could speak is not served
        except httptools.HttpParserError as error:
            raise ProxyError(400, f"the request is not HTTP/1.1: {error}", close=True) from None
        headers = self._headers
        plain = head.startswith(b" HTTP/1.0", head.find(b"\r\n") - 9)
        return RequestHead(
            method=head[: head.find(b" ")],
            path=self._url.partition(b"?")[0],
            headers=headers,
            length=int(headers.get(b"content-length", b"0")),
            chunked=b"transfer-encoding" in headers,
            plain=plain,
            keep_alive=self._keep_alive and not plain,
            refusal=self._refusal(head, plain=plain),
        )

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name in self._headers and name in _SINGLE:
            self._repeated = name
        self._headers[name] = value

    def on_headers_complete(self) -> None:
        self._keep_alive = self._parser.should_keep_alive()  # later it would be asked of the next head

    def _refusal(self, head: bytes, *, plain: bool) -> ProxyError | None:
        headers = self._headers
        line = head.find(b"\r\n")
        coding = headers.get(b"transfer-encoding")
        if head.count(b" ", 0, line) != 2:
            return ProxyError(400, "the request line is not METHOD SP TARGET SP VERSION", close=True)
        if not plain and not head.startswith(b" HTTP/1.1", line - 9):
            return ProxyError(505, "only HTTP/1.1 and HTTP/1.0 are spoken here", close=True)
        if not plain and b"host" not in headers:
            return ProxyError(400, "the request has no Host header", close=True)
        if self._repeated:
            return ProxyError(400, f"the header {self._repeated.decode()} is repeated", close=True)
        if len(headers) > MAX_HEADERS:
            return ProxyError(431, f"the request has more than {MAX_HEADERS} headers", close=True)
        if coding is not None and (plain or coding.lower() != b"chunked"):
            return ProxyError(400, "of transfer codings only chunked is taken, and only in HTTP/1.1", close=True)
        if headers.get(b"content-encoding", b"identity").lower() != b"identity":
            return ProxyError(415, "compressed request bodies are not taken", close=True)
        return None
