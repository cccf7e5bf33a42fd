import multiprocessing
import os
from pathlib import Path

import pytest

from hack.cluster import programs
from hack.cluster.errors import ClusterError, MissingPrerequisite

GO = """#!/bin/sh
echo once >> "$EPD_CACHE/builds"
sleep 0.3
while [ "$1" != -o ]; do shift; done
echo program > "$2"
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `go` that takes note of each build."""
    program = tmp_path / "bin" / "go"
    program.parent.mkdir()
    program.write_text(GO)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("EPD_CACHE", str(tmp_path / "cache"))
    return program


def build() -> None:
    programs.build(node=False)


@pytest.mark.usefixtures("go")
def test_of_several_at_once_one_builds(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    callers = [context.Process(target=build) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
        assert caller.exitcode == 0
    assert (tmp_path / "cache" / "builds").read_text() == "once\n"
    assert programs.programs().localcluster.read_text() == "program\n"


def test_a_failed_build_leaves_no_program(go: Path) -> None:
    go.write_text("#!/bin/sh\necho no such module >&2; exit 1\n")
    with pytest.raises(ClusterError, match="no such module"):
        build()
    assert not programs.programs().localcluster.exists()


def test_without_go_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("EPD_CACHE", str(tmp_path / "cache"))
    with pytest.raises(MissingPrerequisite, match=r"install Go 1\.26"):
        build()


def test_versions_are_those_of_the_modules() -> None:
    assert programs.kubernetes_version().startswith("1.")
    assert programs.coredns_version().startswith("1.")
