"""The cache directory outside the project, and locks for what must be made once."""

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_directory() -> Path:
    """`$EPD_CACHE`, or `~/.cache/epd-operator`; made when it is missing."""
    directory = Path(os.environ.get("EPD_CACHE") or "~/.cache/epd-operator").expanduser().resolve()
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path`, and wait for it as long as it takes.

    The lock is the kernel's: it ends with the process that holds it, however that ends. The file stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def digest(root: Path, files: Iterable[Path]) -> str:
    """12 hexadecimal digits that change with the content or the name (below `root`) of any of the files."""
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(str(path.relative_to(root)).encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:12]
