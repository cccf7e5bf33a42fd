"""One request of a client, from its head to the end of its answer."""

from __future__ import annotations

import re
import secrets
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

from epd_proxy.errors import ProxyError, phrase
from epd_proxy.heads import RequestHead
from epd_proxy.scanner import Buffer

if TYPE_CHECKING:
    from epd_proxy.server import ClientConnection
    from epd_proxy.tracing import Trace

_PROCESS = secrets.token_hex(4).encode()
_numbers: Final = count(1)
_ID: Final = re.compile(rb"[A-Za-z0-9._:-]{1,128}\Z")


def renew_ids() -> None:
    """Make ids differ from those of the process that this one was forked from."""
    global _PROCESS  # noqa: PLW0603  one name for each process
    _PROCESS = secrets.token_hex(4).encode()


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

    def pause(self) -> None:
        """Produce no more until `resume`."""

    def resume(self) -> None:
        """Go on."""


class Request:
    """A request and the means to answer it."""

    # Defaults are the class's, so that a request costs only what it sets.
    body: Buffer = b""
    length = 0
    reserved = 0
    tenant = ""
    stage = "admission"
    status = 0
    answered = False
    """The whole answer was written, or there is nobody to write to."""
    first_byte = 0.0
    """When a stream's head was written, on the loop's clock."""
    kind: Kind | None = None
    trace: Trace | None = None
    work: Abortable | None = None
    admitted = False
    """It is counted as in flight."""

    def __init__(self, connection: ClientConnection, head: RequestHead) -> None:
        self.connection: ClientConnection | None = connection
        self.method = head.method
        self.path = head.path
        self.headers = head.headers
        self.plain = head.plain
        self.keep_alive = head.keep_alive
        self.started = 0.0
        given = head.headers.get(b"x-request-id")
        self.id = given if given and _ID.match(given) else b"req-%b-%x" % (_PROCESS, next(_numbers))

    def enter(self, stage: str) -> None:
        """Go on to a stage."""
        self.stage = stage
        if self.trace:
            self.trace.enter(stage)

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
        if connection is not None:
            self.answered = True
            self.connection = self.work = None
            connection.request_done(self)

    def leave(self) -> None:
        """The client has gone: stop the work."""
        work = self.work
        self.answered = True
        self.connection = self.work = None
        if work:
            work.abort()
