"""What an instance wrote before it died: the lines that a person needs to see."""

import re
from collections.abc import Sequence
from pathlib import Path

TAIL_BYTES = 256 * 1024
"""How much of the end of a log is looked at."""
MAX_LINE = 400
"""Longer lines are cut, characters."""

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_ERROR = re.compile(r"(?:^|[\s.(])(?:[A-Za-z_]*(?:Error|Exception)|error): \S")
# vLLM's API server reports its engine's failure in these words, which name no cause (v1/engine/, vLLM 0.32).
_HEARSAY = ("See root cause above", "Engine core initialization failed", "EngineDeadError")
# The last resort: an engine that was killed leaves no error of its own, only this.
_ENGINE_GONE = "engine core exited unexpectedly"


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines with text in them, as printable text; none if there is no log."""
    return _tail(path)[-count:]


def cause(path: Path) -> str | None:
    """The line that most likely says why: the first that names an error without referring to another one."""
    return first_error(_tail(path))


def first_error(lines: Sequence[str]) -> str | None:
    """The first line that names an error of its own, else the one that says that the engine is gone."""
    own = (line for line in lines if _ERROR.search(line) and not any(words in line for words in _HEARSAY))
    gone = (line for line in lines if _ENGINE_GONE in line)
    return next(own, None) or next(gone, None)


def _tail(path: Path) -> list[str]:
    try:
        with path.open("rb") as log:
            size = log.seek(0, 2)
            log.seek(max(0, size - TAIL_BYTES))
            text = log.read(TAIL_BYTES).decode(errors="replace")
    except OSError:
        return []
    lines = (_printable(line) for line in re.split(r"[\r\n]+", text))
    return [line for line in lines if line.strip()]


def _printable(line: str) -> str:
    line = _ESCAPES.sub("", line).expandtabs(4).rstrip()
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 3] + "..."
