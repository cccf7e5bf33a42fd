"""The chunked transfer coding, where its chunks have to be looked at."""

from __future__ import annotations

END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Return data as one chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def last_boundary(data: bytes) -> int:
    """Return the length of the whole chunks at the start of `data`, which begins with a chunk."""
    at = 0
    while True:
        size = _size_at(data, at)
        if size is None:
            return at
        start, length = size
        end = start + length + 2
        if length == 0 or end > len(data):
            return at
        at = end


def dechunked(data: bytes) -> bytes:
    """Return the content of a whole chunked body."""
    out: list[bytes] = []
    at = 0
    while True:
        size = _size_at(data, at)
        if size is None or size[1] == 0:
            return b"".join(out)
        start, length = size
        out.append(data[start : start + length])
        at = start + length + 2


def _size_at(data: bytes, at: int) -> tuple[int, int] | None:
    """Return where the chunk's data begin and how long they are; None when the size line is not whole."""
    line = data.find(b"\r\n", at)
    if line < 0:
        return None
    return line + 2, int(data[at:line].partition(b";")[0], 16)
