"""A config.json at hand lets rules about the model be checked."""

import json
from pathlib import Path

import pytest

from epd_operator.cli.model_config import model_config_of
from tests.unit.objects import deployment

CLAIM = "volume: {persistentVolumeClaim: {claimName: c}}"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "config.json").write_text(json.dumps({"architectures": ["A"]}))
    for name, text in {"broken": "{", "list": "[]"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(text)
    return tmp_path


@pytest.mark.parametrize("model_id", ["./tiny", "/tiny"])
def test_a_path_is_read_below_the_directory(models: Path, model_id: str) -> None:
    spec = f"model: {{id: {model_id}, {CLAIM}}}"
    assert model_config_of(deployment(spec), models) == {"architectures": ["A"]}


@pytest.mark.parametrize("model_id", ["./absent", "./broken", "./list", "tiny/tiny"])
def test_what_cannot_be_read_is_not_known(models: Path, model_id: str) -> None:
    assert model_config_of(deployment(f"model: {{id: {model_id}, {CLAIM}}}"), models) is None


def test_nothing_is_read_without_a_directory() -> None:
    assert model_config_of(deployment(f"model: {{id: ./tiny, {CLAIM}}}"), None) is None
