"""Shared memory that children of a run leave behind when they are killed.

All processes of the machine share one /dev/shm and the names there say nothing, so a segment is known to be ours only
while one of our processes maps it. vLLM removes its own segments when it ends well; after a SIGKILL nobody does.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from epd_operator.local.processes import PROC, all_processes

DIRECTORY = "/dev/shm/"  # noqa: S108  (the directory of shared memory, not a place for temporary files)


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of shared memory. The inode tells it from a later one of the same name."""

    path: str
    inode: int


class SegmentLedger:
    """The segments that processes of this run were seen to map."""

    def __init__(self) -> None:
        self._seen: set[Segment] = set()

    def observe(self, pids: Iterable[int]) -> None:
        """Note what these processes map now."""
        for pid in pids:
            self._seen.update(mapped(pid))

    def remove_leftovers(self) -> list[str]:
        """Remove the noted segments that still exist and that no process maps any more; returns their paths."""
        left = {segment for segment in self._seen if _exists(segment)}
        if left:
            left -= {segment for pid in all_processes() for segment in mapped(pid)}
        removed = [segment.path for segment in left if _remove(segment)]
        self._seen.clear()
        return sorted(removed)


def mapped(pid: int) -> Iterator[Segment]:
    """The segments that a process maps; none where it has ended or belongs to somebody else."""
    try:
        lines = (PROC / str(pid) / "maps").read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        if DIRECTORY in line and not line.endswith(" (deleted)"):
            # address, permissions, offset, device, inode, path
            fields = line.split(maxsplit=5)
            if fields[5].startswith(DIRECTORY):
                yield Segment(fields[5], int(fields[4]))


def _exists(segment: Segment) -> bool:
    try:
        return Path(segment.path).lstat().st_ino == segment.inode
    except OSError:
        return False


def _remove(segment: Segment) -> bool:
    try:
        Path(segment.path).unlink()
    except OSError:
        return False
    return True
