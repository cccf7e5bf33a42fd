"""Request bodies for engines, as pieces: spans of the client's body by reference, and what replaces the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from epd_proxy.scanner import Scan

Piece = bytes | memoryview


class Edit(NamedTuple):
    """Replace `body[start:end]` by the pieces."""

    start: int
    end: int
    pieces: list[Piece]


def splice(body: memoryview, length: int, edits: Iterable[Edit]) -> list[Piece]:
    """Return `body[:length]` with edits that do not overlap."""
    out: list[Piece] = []
    at = 0
    for edit in sorted(edits, key=lambda edit: edit.start):
        if edit.start > at:
            out.append(body[at : edit.start])
        out += edit.pieces
        at = edit.end
    if at < length:
        out.append(body[at:length])
    return out


def set_members(scan: Scan, values: Mapping[str, bytes], *, add: bool = True) -> list[Edit]:
    """Return edits that give top-level members these JSON values, each occurrence of a name; absent ones are added."""
    edits: list[Edit] = []
    new: list[Piece] = []
    offset = scan.remainder.offset
    for name, value in values.items():
        found = scan.members.get(name)
        if found:
            edits += (Edit(offset(member.start), offset(member.end), [value]) for member in found)
        elif add:
            new.append(b'%b"%b":%b' % (b"," if scan.members or new else b"", name.encode(), value))
    if new:
        close = offset(scan.close)
        edits.append(Edit(close, close, new))
    return edits


def size(pieces: Iterable[Piece]) -> int:
    """Return the number of bytes."""
    return sum(map(len, pieces))
