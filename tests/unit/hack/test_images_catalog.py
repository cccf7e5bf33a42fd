"""The images' Dockerfiles keep their promises, and tags follow what the images are made from."""

import fnmatch
import re
from pathlib import Path

import pytest

from hack.images.catalog import IMAGES, ROOT, Image

every_image = pytest.mark.parametrize("image", IMAGES.values(), ids=list(IMAGES))


@every_image
def test_runs_as_a_numbered_user_that_is_not_root(image: Image) -> None:
    stages = image.dockerfile.read_text().split("\nFROM ")
    assert re.search(r"^USER 1000:1000$", stages[-1], re.MULTILINE)


@every_image
def test_the_base_can_be_chosen(image: Image) -> None:
    text = image.dockerfile.read_text()
    assert text.count("ARG BASE_IMAGE=docker.io/library/python:3.12-slim") == 1
    assert set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) == {"${BASE_IMAGE}"}


@every_image
def test_has_the_usual_labels(image: Image) -> None:
    found = set(re.findall(r"org\.opencontainers\.image\.([a-z.]+)=", image.dockerfile.read_text()))
    assert found == {"title", "description", "version", "licenses", "base.name"}


@every_image
def test_nothing_is_installed_without_a_hash(image: Image) -> None:
    for command in re.findall(r"pip install(.*?)(?:\n(?! )|&&)", image.dockerfile.read_text(), re.DOTALL):
        assert "--require-hashes" in command or "/wheel/*.whl" in command


@every_image
def test_the_digest_covers_what_the_dockerfile_copies(image: Image) -> None:
    copied = [
        path
        for line in re.findall(r"^COPY (?!--from)(.*)$", image.dockerfile.read_text(), re.MULTILINE)
        for path in line.split()[:-1]
    ]
    assert copied
    for path in copied:
        assert any(path == name or path.startswith(f"{name}/") for name in image.inputs), path


@every_image
def test_the_build_gets_every_file_that_the_digest_covers(image: Image) -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    allowed = [line[1:] for line in ignore if line.startswith("!")]
    for name in image.inputs:
        assert any(name == path or name.startswith(f"{path}/") for path in allowed), name


def test_a_tag_changes_with_a_source_and_not_with_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hack.images.catalog.ROOT", tmp_path)
    (tmp_path / "images" / "a").mkdir(parents=True)
    (tmp_path / "images" / "a" / "Dockerfile").write_text("FROM scratch")
    (tmp_path / "code" / "__pycache__").mkdir(parents=True)
    source = tmp_path / "code" / "a.py"
    source.write_text("1")
    image = Image("epd-a", "a", "1.2.3", ("code",))
    before = image.reference()
    (tmp_path / "code" / "__pycache__" / "a.pyc").write_text("x")
    assert image.reference() == before
    assert fnmatch.fnmatch(before, "epd-a:1.2.3-????????????")
    source.write_text("2")
    assert image.reference() != before
