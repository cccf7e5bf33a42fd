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
# vLLM's API server reports the engine's failure in these words, which name no cause.
_HEARSAY = ("See root cause above", "Engine core initialization failed")


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines with text in them, as printable text; none if there is no log."""
    return _tail(path)[-count:]


def cause(path: Path) -> str | None:
    """The line that most likely says why: the first that names an error without referring to another one."""
    return first_error(_tail(path))


def first_error(lines: Sequence[str]) -> str | None:
    """The first line that names an error of its own."""
    return next((line for line in lines if _ERROR.search(line) and not any(words in line for words in _HEARSAY)), None)


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
