import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from epd_operator.local.shared_memory import DIRECTORY, Segment, SegmentLedger, mapped


@pytest.fixture
def path() -> Iterator[Path]:
    path = Path(DIRECTORY) / f"epd_test_{os.getpid()}"
    path.write_bytes(bytes(4096))
    yield path
    path.unlink(missing_ok=True)


def map_file(path: Path) -> mmap.mmap:
    with path.open("r+b") as file:
        return mmap.mmap(file.fileno(), 4096)


def test_what_a_process_maps(path: Path) -> None:
    with map_file(path):
        assert Segment(str(path), path.stat().st_ino) in set(mapped(os.getpid()))
    assert str(path) not in {segment.path for segment in mapped(os.getpid())}


def test_an_ended_process_maps_nothing() -> None:
    assert list(mapped(4_000_000_000)) == []


def test_a_removed_file_is_no_segment(path: Path) -> None:
    with map_file(path):
        path.unlink()
        assert not [segment for segment in mapped(os.getpid()) if path.name in segment.path]


def test_leftovers_are_removed_once_nobody_maps_them(path: Path) -> None:
    ledger = SegmentLedger()
    with map_file(path):
        ledger.observe([os.getpid()])
    assert str(path) in ledger.remove_leftovers()
    assert not path.exists()


def test_what_somebody_still_maps_stays(path: Path) -> None:
    ledger = SegmentLedger()
    with map_file(path):
        ledger.observe([os.getpid()])
        assert str(path) not in ledger.remove_leftovers()
    assert path.exists()


def test_what_was_never_mapped_stays(path: Path) -> None:
    ledger = SegmentLedger()
    ledger.observe([os.getpid()])
    ledger.remove_leftovers()
    assert path.exists()


def test_a_later_file_of_the_same_name_stays(path: Path) -> None:
    ledger = SegmentLedger()
    with map_file(path):
        ledger.observe([os.getpid()])
        kept = path.with_name(path.name + "_other")
        kept.write_bytes(b"")  # takes the next inode, so that the new file cannot get the old one's
        path.unlink()
        path.write_bytes(b"new")
    kept.unlink()
    ledger.remove_leftovers()
    assert path.read_bytes() == b"new"
