"""One request of a client, from its head to the end of its answer."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

from epd_proxy.errors import ProxyError, phrase
from epd_proxy.scanner import Buffer

if TYPE_CHECKING:
    from epd_proxy.server import ClientConnection

_PROCESS: Final = secrets.token_hex(4).encode()
_numbers: Final = count(1)
_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,128}\Z")
_heads: dict[tuple[int, bytes], bytes] = {}

JSON: Final = b"application/json"


class Kind(Enum):
    """How a path is served."""

    CHAT = "chat"
    COMPLETIONS = "completions"
    THROUGH = "through"
    MODELS = "models"
    HEALTH = "health"
    LIVE = "live"
    METRICS = "metrics"


class Abortable(Protocol):
    """What a request is waiting for."""

    def abort(self) -> None:
        """Stop, and close what was opened for it."""


class Request:
    """A request and the means to answer it."""

    __slots__ = (
        "answered",
        "body",
        "connection",
        "first_byte",
        "headers",
        "id",
        "keep_alive",
        "kind",
        "length",
        "method",
        "on_end",
        "path",
        "plain",
        "query",
        "reserved",
        "stage",
        "started",
        "status",
        "tenant",
        "work",
    )

    def __init__(self, connection: ClientConnection, method: bytes, path: bytes, headers: dict[bytes, bytes]) -> None:
        self.connection: ClientConnection | None = connection
        self.method = method
        path, _, self.query = path.partition(b"?")
        self.path = path
        self.headers = headers
        given = headers.get(b"x-request-id")
        self.id = given if given and _ID.match(given) else b"req-%b-%x" % (_PROCESS, next(_numbers))
        self.body: Buffer = b""
        self.length = 0
        self.reserved = 0
        self.keep_alive = True
        self.plain = False
        """The client speaks HTTP/1.0: no chunks."""
        self.tenant = ""
        self.started = 0.0
        self.first_byte = 0.0
        self.status = 0
        self.answered = False
        """The whole answer was written, or there is nobody to write to."""
        self.stage = "admission"
        self.kind: Kind | None = None
        self.work: Abortable | None = None
        self.on_end: Callable[[Request], None] | None = None

    def engine_id(self) -> bytes:
        """Return an id for one request to an engine: the client's own with a part that is never used twice."""
        return b"%b-%b%x" % (self.id, _PROCESS, next(_numbers))

    @property
    def transport(self) -> Any:
        """The client's transport; None when the client has left."""
        return self.connection.transport if self.connection else None

    def head(self, status: int, content_type: bytes, framing: bytes) -> bytes:
        """Return a response head; `framing` is its last header without the line end."""
        prefix = _heads.get((status, content_type))
        if prefix is None:
            line = f"HTTP/1.1 {status} {phrase(status)}\r\ncontent-type: ".encode()
            prefix = line + content_type + b"\r\nx-request-id: "
            if len(_heads) < 256:
                _heads[status, content_type] = prefix
        self.status = status
        if self.keep_alive:
            return b"%b%b\r\n%b\r\n\r\n" % (prefix, self.id, framing)
        return b"%b%b\r\nconnection: close\r\n%b\r\n\r\n" % (prefix, self.id, framing)

    def reply(self, status: int, content_type: bytes, body: bytes, extra: bytes = b"") -> None:
        """Answer with a whole body; `extra` are header lines, each with its line end."""
        if self.connection is None or self.answered:
            return
        head = self.head(status, content_type, extra + b"content-length: %d" % len(body))
        self.transport.write(head + body if self.method != b"HEAD" else head)
        self.end()

    def fail(self, error: ProxyError) -> None:
        """Answer with an error, unless an answer has begun."""
        if self.connection is None or self.answered or self.status:
            return
        extra = b"retry-after: %d\r\n" % error.retry_after if error.retry_after is not None else b""
        if error.close:
            self.keep_alive = False
        self.reply(error.status, JSON, error.to_json(), extra)

    def end(self) -> None:
        """Say that the answer is whole."""
        connection = self.connection
        if connection is None:
            return
        self._close()
        connection.request_done(self)

    def leave(self) -> None:
        """The client has gone: stop the work."""
        work = self.work
        self._close()
        if work:
            work.abort()

    def _close(self) -> None:
        self.answered = True
        self.connection = None
        self.work = None
        on_end, self.on_end = self.on_end, None
        if on_end:
            on_end(self)
