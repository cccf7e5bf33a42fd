"""Memory for request bodies: a byte budget, and buffers that are used again.

A fresh buffer of some megabytes costs as much in page faults as receiving into it, hence the pool.
"""

from __future__ import annotations

from collections import deque

SMALL = 64 * 1024
"""Bodies up to this size (bytes) are not pooled."""

_STEPS = 8


class Budget:
    """Bytes of all bodies held at once."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def take(self, size: int) -> bool:
        """Reserve `size` bytes; False when that would exceed the limit."""
        if self.used + size > self.limit:
            return False
        self.used += size
        return True

    def give(self, size: int) -> None:
        """Return what `take` reserved."""
        self.used -= size


def size_class(size: int) -> int:
    """Return the size of the buffer that serves `size` bytes: at most an eighth larger, so that few classes exist."""
    if size <= SMALL:
        return size
    step = (1 << (size.bit_length() - 1)) // _STEPS
    return -(-size // step) * step


class BufferPool:
    """Buffers of finished requests, newest first, up to `idle_limit` bytes."""

    __slots__ = ("_free", "_order", "idle", "idle_limit")

    def __init__(self, idle_limit: int) -> None:
        self.idle_limit = idle_limit
        self.idle = 0
        self._free: dict[int, list[bytearray]] = {}
        self._order: deque[int] = deque()

    def take(self, size: int) -> bytearray:
        """Return a buffer of at least `size` bytes with arbitrary content."""
        if size <= SMALL:
            return bytearray(size)
        rounded = size_class(size)
        free = self._free.get(rounded)
        if free:
            self.idle -= rounded
            return free.pop()
        return bytearray(rounded)

    def give(self, buffer: bytearray) -> None:
        """Take a buffer back, unless somebody may still read it."""
        size = len(buffer)
        if size <= SMALL or size > self.idle_limit or exported(buffer):
            return
        while self.idle + size > self.idle_limit:
            self._drop_oldest()
        self._free.setdefault(size, []).append(buffer)
        self._order.append(size)
        self.idle += size

    def trim(self) -> None:
        """Give half of what is idle back to the system; called when there was no need for it for a while."""
        target = self.idle // 2
        while self.idle > target:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        size = self._order.popleft()
        free = self._free.get(size)
        if free:  # an entry of `_order` may stand for a buffer that was taken again
            free.pop(0)
            self.idle -= size


def exported(buffer: bytearray) -> bool:
    """Say whether a memoryview of the buffer is still alive, such as in a transport's write queue.

    A bytearray that is exported can't be resized, and says so. Shrinking it by one byte does not move it.
    """
    try:
        last = buffer.pop()
    except BufferError:
        return True
    buffer.append(last)
    return False
