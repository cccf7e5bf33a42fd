"""Waiting for what another process does."""

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def eventually(what: str, ask: Callable[[], Value], *, seconds: float = 30) -> Value:
    """Ask until the answer is true, and return it. The limit is for what never comes, not a claim about speed."""
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}; the last answer was {answer!r}"
        time.sleep(0.05)
    return answer
