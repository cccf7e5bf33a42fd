"""What can go wrong with a simulated engine."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Mode(StrEnum):
    """How a request is answered instead."""

    STATUS = "status"
    """An error of status `argument` in vLLM's shape."""
    HANG = "hang"
    """No answer."""
    CLOSE = "close"
    """The connection is closed without an answer."""
    STALE = "stale"
    """The same, only on a connection that has served a request before: the keep-alive race."""
    DIE = "die"
    """The connection is closed after `argument` chunks of a stream, or in the middle of a JSON answer."""
    TEAR = "tear"
    """The connection is closed in the middle of chunk `argument` of a stream."""
    STALL = "stall"
    """Nothing more comes after `argument` chunks of a stream."""
    SLOW = "slow"
    """`argument` milliseconds before each chunk, or before the answer."""
    GARBAGE = "garbage"
    """Bytes that are not HTTP."""
    NOT_JSON = "not-json"
    """A whole answer whose body is not JSON."""
    NO_METADATA = "no-metadata"
    """An encoder reports `metadata: {}`."""
    NO_HANDLES = "no-handles"
    """An encoder reports nothing; a prefill reports no kv_transfer_params."""


@dataclass(slots=True)
class Fault:
    """Answers the next `count` requests (-1: all) of a role whose body contains `match` in another way."""

    role: str
    mode: Mode
    argument: int = 0
    count: int = -1
    match: bytes = b""
    engine: int = -1
    """Number of the engine within its role; -1: any."""

    def applies(self, role: str, engine: int, body: bytes, served: int) -> bool:
        """Say whether this request is answered so, and count it."""
        if self.role != role or not self.count or self.engine not in (-1, engine) or self.match not in body:
            return False
        if self.mode is Mode.STALE and not served:
            return False
        if self.count > 0:
            self.count -= 1
        return True
