"""Waiting for a condition, with a limit."""

import time
from collections.abc import Callable

_POLL_SECONDS = 0.25


def until(condition: Callable[[], bool | None], seconds: float) -> bool:
    """Wait until the condition holds; False after `seconds`, or at once where it says None: it never will."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        held = condition()
        if held is None:
            return False
        if held:
            return True
        time.sleep(_POLL_SECONDS)
    return False
