import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from epd_operator.local.guardian import Guardian, stand_guard
from epd_operator.local.processes import members

SLEEP = "import time; time.sleep(300)"


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", SLEEP], start_new_session=True) as process:
        yield process
        process.kill()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    (path / "file").touch()
    return path


def guard(*messages: str) -> None:
    reading, writing = os.pipe()
    os.write(writing, "".join(f"{message}\n" for message in messages).encode())
    os.close(writing)
    stand_guard(reading)
    os.close(reading)


def test_cleans_up_when_its_owner_is_gone(child: subprocess.Popen[bytes], directory: Path) -> None:
    guard(f'{{"directory": "{directory}"}}', f'{{"session": {child.pid}}}')
    assert members(child.pid) == []
    assert not directory.exists()


def test_does_nothing_when_it_is_dismissed(child: subprocess.Popen[bytes], directory: Path) -> None:
    guard(f'{{"directory": "{directory}"}}', f'{{"session": {child.pid}}}', '{"done": true}')
    assert members(child.pid) == [child.pid]
    assert (directory / "file").exists()


def test_half_a_message_is_none(directory: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, f'{{"directory": "{directory}"'.encode())
    os.close(writing)
    stand_guard(reading)
    os.close(reading)
    assert directory.exists()


def test_dismissal(directory: Path) -> None:
    guardian = Guardian(str(directory))
    guardian.dismiss()
    assert (directory / "file").exists()
