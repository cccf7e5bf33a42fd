"""What an image's size is made of."""

from collections.abc import Iterator
from pathlib import Path

ADDED = ("opt/epd", "opt/vllm")
"""Where our images put what they have beyond their base."""


def report(root: Path, count: int) -> Iterator[str]:
    """Lines of megabytes (10^6) and names: all that is above the base, then its largest Python packages."""
    for name in ADDED:
        if (root / name).is_dir():
            yield f"{_size(root / name) / 1e6:8.1f} MB  /{name}"
            [packages] = (root / name).glob("lib/python*/site-packages")
            found = sorted(((_size(path), path.name) for path in packages.iterdir()), reverse=True)
            yield from (f"{size / 1e6:8.1f} MB    {package}" for size, package in found[:count])
            yield f"{sum(size for size, _ in found[count:]) / 1e6:8.1f} MB    {len(found) - count} more"


def _size(path: Path) -> int:
    """Bytes of a file, or of the files below a folder."""
    files = [path] if not path.is_dir() or path.is_symlink() else path.rglob("*")
    return sum(file.lstat().st_size for file in files if file.is_symlink() or file.is_file())
