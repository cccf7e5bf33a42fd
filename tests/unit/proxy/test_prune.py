import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from epd_proxy import prune as module
from epd_proxy.prune import Outcome, prune

LINE = 1_000_000.0
"""Files used since then stay."""
OLD, OLDER, YOUNG = LINE - 10, LINE - 1000, LINE + 10
BLOCK = 4096


def put(path: Path, used: float, *, blocks: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * BLOCK * blocks)
    os.utime(path, (used, used))
    return path


def age(root: Path, used: float = OLDER) -> None:
    """Give every directory below a root the same age: writing files has made them young."""
    for folder in sorted(root.rglob("*"), reverse=True):
        if folder.is_dir() and not folder.is_symlink():
            os.utime(folder, (used, used))


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_symlink() or not path.is_dir()}


def test_old_files_go_with_their_directories_and_young_ones_stay(tmp_path: Path) -> None:
    put(tmp_path / "rev" / "a" / "cache", OLD)
    put(tmp_path / "rev" / "b" / "cache", YOUNG)
    put(tmp_path / "gone" / "c" / "cache", OLDER)
    age(tmp_path)
    outcome = prune(str(tmp_path), LINE)
    assert names(tmp_path) == {"rev/b/cache"}
    assert not (tmp_path / "rev" / "a").exists()
    assert not (tmp_path / "gone").exists()
    assert outcome == Outcome(
        files=3, size=3 * BLOCK, removed_files=2, removed_size=2 * BLOCK, removed_directories=3, failures=0
    )


@pytest.mark.parametrize(("read", "written"), [(YOUNG, OLD), (OLD, YOUNG), (LINE, OLDER)])
def test_reading_or_writing_keeps_a_file(tmp_path: Path, read: float, written: float) -> None:
    os.utime(put(tmp_path / "a" / "cache", OLD), (read, written))
    assert prune(str(tmp_path), LINE).removed_files == 0


@pytest.mark.parametrize(
    ("keep_blocks", "left"),
    [
        (0, {"young"}),
        (1, {"young"}),
        (2, {"young", "old"}),
        (3, {"young", "old", "older"}),
        (4, {"young", "old", "older", "oldest"}),
    ],
)
def test_the_longest_unused_go_first_until_the_rest_fits(tmp_path: Path, keep_blocks: int, left: set[str]) -> None:
    for name, used in {"young": YOUNG, "old": OLD, "older": OLDER, "oldest": OLDER - 1}.items():
        put(tmp_path / name, used)
    prune(str(tmp_path), LINE, keep_blocks * BLOCK)
    assert names(tmp_path) == left


def test_links_are_neither_followed_nor_removed(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "cache", OLD)
    root = tmp_path / "root"
    root.mkdir()
    (root / "directory").symlink_to(outside.parent)
    (root / "file").symlink_to(outside)
    (root / "loop").symlink_to(root)
    outcome = prune(str(root), LINE)
    assert outside.exists()
    assert names(root) == {"directory", "file", "loop"}
    assert outcome == Outcome()


def test_a_root_that_is_a_link_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "real" / "cache", OLD)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        prune(str(tmp_path / "link"), LINE)
    assert (tmp_path / "real" / "cache").exists()


def test_a_missing_directory_is_an_empty_one(tmp_path: Path) -> None:
    assert prune(str(tmp_path / "absent"), LINE) == Outcome()


def test_a_young_empty_directory_stays(tmp_path: Path) -> None:
    (tmp_path / "young").mkdir()
    (tmp_path / "old").mkdir()
    os.utime(tmp_path / "young", (YOUNG, YOUNG))
    os.utime(tmp_path / "old", (OLD, OLD))
    assert prune(str(tmp_path), LINE).removed_directories == 1
    assert [path.name for path in tmp_path.iterdir()] == ["young"]


def test_a_file_that_is_used_while_the_others_are_looked_at_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used, replaced, gone = (put(tmp_path / name / "cache", OLD) for name in ("used", "replaced", "gone"))
    age(tmp_path)
    remove = module._remove_file

    def meanwhile(root: int, file: module.Stale, since: float, outcome: Outcome) -> None:
        os.utime(used, (YOUNG, YOUNG))
        if file.path[0] == "replaced":
            put(tmp_path / "new", OLD).rename(replaced)
        if file.path[0] == "gone":
            gone.unlink()
            gone.parent.rmdir()
        remove(root, file, since, outcome)

    monkeypatch.setattr(module, "_remove_file", meanwhile)
    outcome = prune(str(tmp_path), LINE)
    assert names(tmp_path) == {"used/cache", "replaced/cache"}
    assert (outcome.removed_files, outcome.failures) == (0, 0)


def test_a_directory_that_becomes_a_link_is_not_entered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = put(tmp_path / "outside" / "cache", OLD)
    root = tmp_path / "root"
    seen = put(root / "a" / "cache", OLD)
    os.link(seen, outside.parent / "same")  # the same inode, so that only the link itself can save it
    remove = module._remove_file

    def swapped(folder: int, file: module.Stale, since: float, outcome: Outcome) -> None:
        seen.parent.rename(root / "moved")
        (outside.parent / "same").rename(outside)
        (root / "a").symlink_to(outside.parent)
        remove(folder, file, since, outcome)

    monkeypatch.setattr(module, "_remove_file", swapped)
    prune(str(root), LINE)
    assert outside.exists()


def test_what_cannot_be_removed_is_counted_and_the_first_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "a", OLDER)
    put(tmp_path / "b", OLD)

    def refuse(name: str, **_: object) -> None:
        raise PermissionError(1, "Operation not permitted", name)

    monkeypatch.setattr(os, "unlink", refuse)
    outcome = prune(str(tmp_path), LINE)
    assert (outcome.failures, outcome.first_failure, outcome.removed_files) == (2, "a: Operation not permitted", 0)


def test_the_program_prints_one_line_of_json(tmp_path: Path) -> None:
    put(tmp_path / "a" / "cache", OLD)
    put(tmp_path / "b" / "cache", 4e9)
    command = [sys.executable, "-m", "epd_proxy.prune", "--directory", str(tmp_path), "--older-than", "3600"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    printed = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert (printed["directory"], printed["files"], printed["removed_files"]) == (str(tmp_path), 2, 1)
    assert names(tmp_path) == {"b/cache"}


def test_a_file_in_the_place_of_the_directory_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = put(tmp_path / "file", OLD)
    assert module.main(["--directory", str(file), "--older-than", "1"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert (printed["failures"], printed["first_failure"]) == (1, f"{file}: Not a directory")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--directory", "d"],
        ["--directory", "d", "--older-than", "0"],
        ["--directory", "d", "--older-than", "-1"],
        ["--directory", "d", "--older-than", "1.5"],
        ["--directory", "d", "--older-than", "1", "--keep-bytes", "1Gi"],
    ],
)
def test_wrong_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        module.main(arguments)
    assert "usage:" in capsys.readouterr().err
