"""A run that starts in a second: a stand-in for vLLM, and a folder that passes for a model."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from hack.engine_env import EngineEnvironment
from hack.local_run import LocalRun

FAKE = Path(__file__).with_name("fake_vllm.py")
EXAMPLES = Path(__file__).parents[3] / "examples"

StartRun = Callable[..., LocalRun]


@pytest.fixture
def fake(tmp_path: Path) -> EngineEnvironment:
    """An environment whose vllm is the stand-in."""
    environment = EngineEnvironment(tmp_path / "fake")
    environment.vllm.parent.mkdir(parents=True)
    environment.vllm.write_text(f"#!{sys.executable}\n{FAKE.read_text()}")
    environment.vllm.chmod(0o755)
    return environment


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A model directory for the examples."""
    folder = tmp_path / "models" / "tiny-qwen2-vl"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder.parent


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write an example with a fault in one role: `write("quickstart", encode="dies-at-start")`."""

    def write(example: str, **faults: str) -> Path:
        document = yaml.safe_load((EXAMPLES / f"{example}.yaml").read_text())
        for role, fault in faults.items():
            document["spec"][role]["env"] = [{"name": "FAULT", "value": fault}]
        file = tmp_path / f"{example}-{'-'.join(faults.values())}.yaml"
        file.write_text(yaml.safe_dump(document))
        return file

    return write


@pytest.fixture
def start(
    fake: EngineEnvironment, models: Path, write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[StartRun]:
    """Start `epd run` on an example with faults; what still runs at the end is stopped."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    runs: list[LocalRun] = []

    def start(example: str = "quickstart", *more: str, **faults: str) -> LocalRun:
        runs.append(LocalRun(write(example, **faults), models, fake, *more))
        return runs[-1]

    yield start
    for run in runs:
        run.stop()
