import os
from pathlib import Path

import pytest

from epd_operator.local.errors import LocalError
from epd_operator.local.workspace import Workspace


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_only_the_owner_can_look_in() -> None:
    workspace = Workspace.create()
    key, file = workspace.new_key("engine-key")
    assert file.read_text() == key
    assert len(key) == 64
    assert file.stat().st_mode & 0o777 == 0o600
    inside = [workspace.root, *workspace.root.iterdir(), workspace.temporary("encode-0")]
    assert all(path.stat().st_mode & 0o077 == 0 for path in inside)
    workspace.remove()
    assert not workspace.root.exists()


def test_keys_differ() -> None:
    workspace = Workspace.create()
    assert workspace.new_key("a")[0] != workspace.new_key("b")[0]
    workspace.remove()


def test_sockets_fit_below_a_long_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    workspace = Workspace.create()
    assert len(os.fsencode(workspace.temporary("decode-9999"))) + 37 <= 107
    assert list(deep.iterdir()) == []
    workspace.remove()


def test_logs_may_stay(tmp_path: Path) -> None:
    workspace = Workspace.create(tmp_path / "kept" / "logs")
    workspace.log("encode-0").write_text("kept")
    workspace.remove()
    assert (tmp_path / "kept" / "logs" / "encode-0.log").read_text() == "kept"


def test_logs_that_cannot_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LocalError, match=r"--logs .*file/logs: Not a directory"):
        Workspace.create(tmp_path / "file" / "logs")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
