"""Removes old embeddings from a shared directory: `python -m epd_proxy.prune --directory D --older-than SECONDS`.

vLLM's ECExampleConnector writes `<directory>/<hash>/encoder_cache.safetensors` and never removes anything (vLLM 0.33,
distributed/ec_transfer/ec_connector/example_connector.py). A file goes when it was neither read nor written for the
given time; with `--keep-bytes` the youngest of those stay, up to that many bytes. Symbolic links are never followed,
and whatever others remove or add meanwhile is no error.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Final

MAX_DEPTH: Final = 32
"""Directories below the given one; deeper ones are not the connector's and stay."""
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_WANTED: Final = {errno.ENOENT, errno.ENOTEMPTY, errno.ENOTDIR, errno.ELOOP, errno.EEXIST}
"""Errors that say that somebody else was here first."""
_Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Stale:
    """A file that nobody used for long; the longest unused comes first in order."""

    used: float
    """When it was last read or written, Unix time in seconds."""
    path: _Path
    """Names from the directory down."""
    size: int
    """Bytes."""
    inode: int


@dataclass(slots=True)
class Outcome:
    """What one run found and did. Sizes are bytes."""

    files: int = 0
    size: int = 0
    removed_files: int = 0
    removed_size: int = 0
    removed_directories: int = 0
    failures: int = 0
    first_failure: str | None = None

    def note(self, path: _Path, error: OSError) -> None:
        """Take note of what could not be read or removed, unless somebody else was there first."""
        if error.errno in _NOT_WANTED:
            return
        self.failures += 1
        if self.first_failure is None:
            self.first_failure = f"{'/'.join(path) or '.'}: {error.strerror}"


def prune(directory: str, unused_since: float, keep_bytes: int = 0) -> Outcome:
    """Remove files below `directory` last read or written before `unused_since` (Unix time, seconds).

    The longest unused go first, until all files together have at most `keep_bytes`; a file in use stays whatever the
    sum. Directories that are empty afterwards and were not changed since `unused_since` by anyone else go too, but not
    `directory` itself. A missing `directory` is an empty one; raises OSError if it cannot be opened or is a link.
    """
    outcome = Outcome()
    try:
        root = os.open(directory, _OPEN)
    except FileNotFoundError:
        return outcome
    try:
        old_directories: list[_Path] = []
        stale = sorted(_walk(root, (), unused_since, old_directories, outcome))
        for file in stale:
            if outcome.size - outcome.removed_size <= keep_bytes:
                break
            _remove_file(root, file, unused_since, outcome)
        for path in old_directories:  # the inner ones come first
            _remove_directory(root, path, outcome)
    finally:
        os.close(root)
    return outcome


def _walk(
    folder: int, path: _Path, unused_since: float, old_directories: list[_Path], outcome: Outcome
) -> Iterator[Stale]:
    """The stale files below an open directory. Counts all regular files, and notes directories that are as old."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        outcome.note(path, error)
        return
    for name in names:
        here = (*path, name)
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            outcome.note(here, error)
            continue
        if stat.S_ISREG(found.st_mode):
            outcome.files += 1
            outcome.size += found.st_size
            if (used := _used(found)) < unused_since:
                yield Stale(used, here, found.st_size, found.st_ino)
        elif stat.S_ISDIR(found.st_mode) and len(here) <= MAX_DEPTH:
            with _opened(folder, (name,), here, outcome) as inner:
                if inner is not None:
                    yield from _walk(inner, here, unused_since, old_directories, outcome)
            if found.st_mtime < unused_since:
                old_directories.append(here)


def _remove_file(root: int, file: Stale, unused_since: float, outcome: Outcome) -> None:
    """Remove a file if it is still the one that was seen, and still unused."""
    with _opened(root, file.path[:-1], file.path, outcome) as folder:
        if folder is None:
            return
        name = file.path[-1]
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if found.st_ino != file.inode or _used(found) >= unused_since:
                return
            os.unlink(name, dir_fd=folder)
        except OSError as error:
            outcome.note(file.path, error)
            return
    outcome.removed_files += 1
    outcome.removed_size += file.size


def _remove_directory(root: int, path: _Path, outcome: Outcome) -> None:
    """Remove a directory if it is empty."""
    with _opened(root, path[:-1], path, outcome) as folder:
        if folder is None:
            return
        try:
            os.rmdir(path[-1], dir_fd=folder)
        except OSError as error:
            outcome.note(path, error)
            return
    outcome.removed_directories += 1


@contextmanager
def _opened(folder: int, names: _Path, path: _Path, outcome: Outcome) -> Iterator[int | None]:
    """The directory `names` below an open one, no component a link; None if there is none any more."""
    current = os.dup(folder)
    try:
        try:
            for name in names:
                inner = os.open(name, _OPEN, dir_fd=current)
                os.close(current)
                current = inner
        except OSError as error:
            outcome.note(path, error)
            yield None
        else:
            yield current
    finally:
        os.close(current)


def _used(found: os.stat_result) -> float:
    return max(found.st_atime, found.st_mtime)


def main(argv: list[str] | None = None) -> int:
    """Run once and print the outcome as one line of JSON; 1 if anything could not be read or removed."""
    parser = argparse.ArgumentParser(prog="epd_proxy.prune", description=__doc__.partition("\n")[0])
    parser.add_argument("--directory", required=True, help="the shared directory of one deployment")
    parser.add_argument(
        "--older-than", required=True, type=_positive, metavar="SECONDS", help="files used since then stay"
    )
    parser.add_argument("--keep-bytes", type=_natural, default=0, metavar="N", help="what may stay of older files")
    options = parser.parse_args(argv)
    try:
        outcome = prune(options.directory, time.time() - options.older_than, options.keep_bytes)
    except OSError as error:
        outcome = Outcome(failures=1, first_failure=f"{options.directory}: {error.strerror}")
    sys.stdout.write(json.dumps({"directory": options.directory, **asdict(outcome)}) + "\n")
    return 1 if outcome.failures else 0


def _positive(text: str) -> int:
    if (number := _natural(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number of seconds from 1")
    return number


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number from 0")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
