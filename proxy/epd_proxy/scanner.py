"""Finds the media of a chat request without parsing them.

Two steps. `punch` finds the long base64 runs by search and leaves a short token in place of each: what remains is
small. `scan` then reads the remainder as JSON, with the C scanner of the standard library for every value below a
content part, and keeps the byte spans of the original body, so that a rewrite is a list of edits and everything else is
passed on as it came: escapes, duplicate keys, numbers of any length.

A run is cut out only behind `;base64,` or behind an opening quote, up to the next quote that ends a JSON string. Were
such a place not inside a string, the remainder would not be JSON and is refused.
"""

from __future__ import annotations

import json
import json.scanner
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final

Buffer = bytes | bytearray

LONG: Final = 1024
"""Runs shorter than this many bytes stay where they are."""

MAX_RUNS: Final = 4096
"""Runs cut out of one body; a client that sends more only pays with a larger remainder."""

_TOKEN: Final = secrets.token_hex(12)
_TOKEN_FORM: Final = re.compile(rf"@{_TOKEN}:(\d+)@")
_BLANK: Final = frozenset(" \t\n\r")
_SPACE: Final[Callable[[str, int], re.Match[str]]] = re.compile(r"[ \t\n\r]*").match  # type: ignore[assignment]
_AUDIO_DATA: Final = re.compile(rb'"data"[ \t\n\r]*:[ \t\n\r]*"')


class MalformedError(ValueError):
    """The body is not the JSON of a request; the message is for the client."""


@dataclass(slots=True)
class Run:
    """A cut-out run of bytes, `body[start:end]`, the inside of a JSON string or its tail."""

    start: int
    end: int


@dataclass(slots=True)
class Remainder:
    """A body without its long runs, as Latin-1 text so that one character is one byte."""

    text: str
    runs: list[Run]
    _marks: list[tuple[int, int]] = field(default_factory=list)  # (position in text behind a token, position in body)

    def offset(self, position: int) -> int:
        """Return the place in the body of a place in the text, which must not lie inside a token."""
        shift = 0
        for at, original in self._marks:
            if at > position:
                break
            shift = original - at
        return position + shift

    def run_of(self, value: str) -> tuple[int, int, int] | None:
        """Return (number of the run, start, end of its token) for a parsed string that holds one."""
        found = _TOKEN_FORM.search(value)
        return (int(found[1]), found.start(), found.end()) if found else None


def punch(body: Buffer, length: int) -> Remainder:
    """Cut the long runs out of `body[:length]`."""
    runs = list(_base64_runs(body, length))
    rest = length - sum(run.end - run.start for run in runs)
    if rest > 16 * LONG:
        runs = sorted(runs + list(_audio_runs(body, length, runs)), key=lambda run: run.start)
    if not runs:
        return Remainder(str(memoryview(body)[:length], "latin-1"), [])
    view = memoryview(body)
    pieces: list[str] = []
    marks: list[tuple[int, int]] = []
    at = size = 0
    for number, run in enumerate(runs):
        token = f"@{_TOKEN}:{number}@"
        pieces += (str(view[at : run.start], "latin-1"), token)
        size += run.start - at + len(token)
        at = run.end
        marks.append((size, at))
    pieces.append(str(view[at:length], "latin-1"))
    return Remainder("".join(pieces), runs, marks)


def _base64_runs(body: Buffer, length: int) -> Iterator[Run]:
    at = 0
    for _ in range(MAX_RUNS):
        found = body.find(b";base64,", at, length)
        if found < 0:
            return
        start = found + 8
        end = _closing_quote(body, start, length)
        if end < 0:
            return
        if end - start >= LONG:
            yield Run(start, end)
        at = end + 1


def _audio_runs(body: Buffer, length: int, taken: list[Run]) -> Iterator[Run]:
    """Runs of `"data": "..."`, in which `input_audio` and Anthropic's sources carry bare base64."""
    gaps = [0, *(edge for run in taken for edge in (run.start, run.end)), length]
    for low, high in zip(gaps[::2], gaps[1::2], strict=True):
        at = low
        for _ in range(MAX_RUNS):
            found = _AUDIO_DATA.search(body, at, high)
            if not found:
                break
            start = found.end()
            end = _closing_quote(body, start, high)
            if end < 0:
                break
            if end - start >= LONG:
                yield Run(start, end)
            at = end + 1


def _closing_quote(body: Buffer, start: int, length: int) -> int:
    """Return the first quote from `start` on that is not escaped, or -1; `start` is in a string."""
    at = start
    while True:
        at = body.find(b'"', at, length)
        if at < 0:
            return -1
        before = at
        while before > start and body[before - 1] == 0x5C:
            before -= 1
        if (at - before) % 2 == 0:
            return at
        at += 1


class _Context:
    """What the C scanner of json reads its options from."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}  # noqa: RUF012  the scanner clears it after each value


_scan_value: Callable[[str, int], tuple[Any, int]] = json.scanner.c_make_scanner(_Context())  # type: ignore[attr-defined]


@dataclass(slots=True)
class Part:
    """A content part that is an object: its value (Latin-1 strings, tokens in place of runs), its span in the text."""

    value: dict[str, Any]
    start: int
    end: int


@dataclass(slots=True)
class Member:
    """A top-level member: the span of its value in the text, and the value (None for messages)."""

    start: int
    end: int
    value: Any


@dataclass(slots=True)
class Scan:
    """A request body: top-level members by name in order of appearance, and the object parts of all messages."""

    remainder: Remainder
    members: dict[str, list[Member]]
    parts: list[Part]
    close: int
    """Place in the text of the closing brace."""

    def value(self, name: str, default: Any = None) -> Any:
        """Return the value that a JSON reader sees: the last one of that name."""
        found = self.members.get(name)
        return found[-1].value if found else default


@contextmanager
def _client_words() -> Iterator[None]:
    """Turn what the scanner raises into words for the client."""
    try:
        yield
    except MalformedError:
        raise
    except StopIteration as error:
        raise MalformedError(f"the body is not JSON: a value is missing near byte {error.value}") from None
    except IndexError:
        raise MalformedError("the body is not JSON: it ends too early") from None
    except RecursionError:
        raise MalformedError("the body is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise MalformedError(f"the body is not JSON: {error.msg} near byte {error.pos}") from None
    except ValueError as error:
        raise MalformedError(f"the body is not JSON: {error}") from None


def loads(text: str) -> Any:
    """Parse small JSON text; raises MalformedError."""
    try:
        value, end = _scan_value(text, 0)
        if end == len(text):
            return value
    except (StopIteration, ValueError, RecursionError):
        pass
    with _client_words():
        value, end = _scan_value(text, _skip(text, 0))
        _end(text, end)
        return value


def scan(remainder: Remainder) -> Scan:
    """Read a request body; raises MalformedError for what is not a JSON object with well-formed messages."""
    text = remainder.text
    members: dict[str, list[Member]] = {}
    parts: list[Part] = []

    def member(name: str, _: int, at: int) -> int:
        value = None
        if name == "messages":
            end = _messages(text, at, parts)
        else:
            value, end = _scan_value(text, at)
        members.setdefault(name, []).append(Member(at, end, value))
        return end

    with _client_words():
        end = walk_object(text, _skip(text, 0), member, "the body")
        _end(text, end)
    return Scan(remainder, members, parts, end - 1)


@dataclass(slots=True, frozen=True)
class Span:
    """A member in the text: where its name, its value and what follows begin."""

    name: int
    value: int
    end: int


def spans(text: str, start: int) -> dict[str, Span]:
    """Return where the members of the object at `start` are, the last one of each name; it was scanned before."""
    found: dict[str, Span] = {}

    def member(name: str, name_at: int, at: int) -> int:
        end = _scan_value(text, at)[1]
        found[name] = Span(name_at, at, end)
        return end

    walk_object(text, start, member, "the part")
    return found


def walk_object(text: str, start: int, visit: Callable[[str, int, int], int], what: str) -> int:
    """Visit the members of an object with (name, its place, place of the value) -> end of the value; return the end."""
    if text[start : start + 1] != "{":
        raise MalformedError(f"{what} is not a JSON object")
    at = _skip(text, start + 1)
    if text[at] == "}":
        return at + 1
    while True:
        if text[at] != '"':
            raise MalformedError(f"the body is not JSON: a name is missing near byte {at}")
        name_at = at
        name, at = scanstring(text, at + 1, True)
        at = _skip(text, at)
        if text[at] != ":":
            raise MalformedError(f"the body is not JSON: a colon is missing near byte {at}")
        at = _skip(text, visit(name, name_at, _skip(text, at + 1)))
        if text[at] == "}":
            return at + 1
        if text[at] != ",":
            raise MalformedError(f"the body is not JSON: a comma is missing near byte {at}")
        at = _skip(text, at + 1)


def walk_array(text: str, start: int, visit: Callable[[int], int]) -> int:
    """Visit the elements of an array with place -> end of the element; return the array's end."""
    at = _skip(text, start + 1)
    if text[at] == "]":
        return at + 1
    while True:
        at = _skip(text, visit(at))
        if text[at] == "]":
            return at + 1
        if text[at] != ",":
            raise MalformedError(f"the body is not JSON: a comma is missing near byte {at}")
        at = _skip(text, at + 1)


def _messages(text: str, start: int, parts: list[Part]) -> int:
    if text[start] != "[":
        raise MalformedError("messages is not an array")

    def content(name: str, _: int, at: int) -> int:
        if name == "content" and text[at] == "[":
            return walk_array(text, at, part)
        return _scan_value(text, at)[1]

    def part(at: int) -> int:
        value, end = _scan_value(text, at)
        if isinstance(value, dict):
            parts.append(Part(value, at, end))
        elif not isinstance(value, str):
            raise MalformedError(f"content part {text[at : min(end, at + 40)]} is neither an object nor a string")
        return end

    return walk_array(text, start, lambda at: walk_object(text, at, content, "a message"))


def _skip(text: str, at: int) -> int:
    if text[at : at + 1] in _BLANK:
        return _SPACE(text, at).end()
    return at


def _end(text: str, at: int) -> None:
    if _skip(text, at) != len(text):
        raise MalformedError(f"the body is not JSON: extra data at byte {at}")
