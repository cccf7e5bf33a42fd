import os
from pathlib import Path

import pytest

from hack.cluster.errors import ClusterError
from hack.cluster.kind import CONFIGURATION, Kind
from hack.cluster.provider import Choice, Given, Local, Name, choose, chosen, forget

STUB = """#!/bin/sh
echo "{name} $*" >> "{calls}"
{answer}
"""


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for programs, before all others."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    return directory


def stub(path: Path, name: str, answer: str = "") -> Path:
    """A program that takes note of its calls."""
    calls = path / f"{name}.calls"
    (path / name).write_text(STUB.format(name=name, calls=calls, answer=answer))
    (path / name).chmod(0o755)
    return calls


def test_a_named_context_goes_first(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stub(path, "docker")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    assert choose("mine") == Choice(Name.GIVEN, tmp_path / "config", "mine")


@pytest.mark.parametrize(("answer", "name"), [("", Name.KIND), ("exit 1", Name.LOCAL)])
def test_kind_is_for_where_docker_answers(path: Path, answer: str, name: Name) -> None:
    stub(path, "docker", answer)
    assert choose().name is name


def test_a_choice_is_remembered(tmp_path: Path) -> None:
    assert chosen(tmp_path) == Choice(Name.LOCAL)
    choice = Choice(Name.GIVEN, tmp_path / "config", "mine")
    choice.save(tmp_path)
    assert chosen(tmp_path) == choice
    assert chosen(tmp_path).provider(tmp_path) == Given(tmp_path / "config", "mine")
    forget(tmp_path)
    assert chosen(tmp_path).provider(tmp_path) == Local(tmp_path)


def test_kind_makes_its_cluster_once(path: Path, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kind.kubeconfig"
    calls = stub(path, "kind")
    Kind(tmp_path).start()
    created = f"create cluster --config={CONFIGURATION} --kubeconfig={kubeconfig} --wait=180s"
    assert calls.read_text().splitlines() == ["kind get clusters", f"kind {created}"]
    calls.unlink()
    stub(path, "kind", "[ $1 = get ] && echo epd || true")
    Kind(tmp_path).start()
    exported = f"export kubeconfig --kubeconfig={kubeconfig} --name=epd"
    assert calls.read_text().splitlines() == ["kind get clusters", f"kind {exported}"]


def test_kind_loads_images_and_goes(path: Path, tmp_path: Path) -> None:
    calls = stub(path, "kind")
    Kind(tmp_path).load(tmp_path / "image.tar")
    Kind(tmp_path).stop()
    loaded = f"kind load image-archive {tmp_path}/image.tar --name=epd"
    gone = f"kind delete cluster --kubeconfig={tmp_path}/kind.kubeconfig --name=epd"
    assert calls.read_text().splitlines() == [loaded, gone]


def test_kind_says_why_it_fails(path: Path, tmp_path: Path) -> None:
    stub(path, "kind", "echo no space left on device >&2; exit 1")
    with pytest.raises(ClusterError, match="no space left on device"):
        Kind(tmp_path).start()


def test_another_cluster_is_left_as_it_is(tmp_path: Path) -> None:
    given = Given(tmp_path / "config", "mine")
    with pytest.raises(ClusterError, match="push them to a registry"):
        given.load(tmp_path / "image.tar")
    with pytest.raises(ClusterError, match="pretended GPUs"):
        given.set_gpus(3)
    given.stop()
