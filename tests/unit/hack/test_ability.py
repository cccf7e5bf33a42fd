"""What keeps a machine from being a node is told in words. That containers run at all is shown by tests/e2e."""

import os
from pathlib import Path

import pytest

from hack.cluster.ability import obstacle


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("free_bytes", "memory_bytes", "words"),
    [(1 << 60, 0, "and images need 1152921505"), (0, 1 << 60, "of memory are available, and engines need")],
)
def test_too_little_room(tmp_path: Path, free_bytes: int, memory_bytes: int, words: str) -> None:
    assert words in obstacle(tmp_path, free_bytes, memory_bytes)


def test_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert obstacle(tmp_path, 0, 0) == "a node needs root"


@pytest.mark.usefixtures("root")
def test_what_the_kernel_refuses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hack.cluster.ability.OVERLAY", "echo no such device >&2; exit 32")
    monkeypatch.setattr("hack.cluster.ability.Settings.bridge", "none-of-this-name")
    words = obstacle(tmp_path, 0, 0)
    assert "does not let this machine have overlay mounts" in words
    assert "no such device" in words or "unshare" in words
