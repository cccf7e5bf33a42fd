"""The tiny models of `tiny_model.py`, each made once and kept in the project's cache."""

import hashlib
import subprocess
from pathlib import Path

from hack.engine_env import EngineEnvironment, cache_directory

SCRIPT = Path(__file__).with_name("tiny_model.py")


class ModelError(Exception):
    """A model cannot be made; the message holds what the script said."""


def ensure(environment: EngineEnvironment, architecture: str = "qwen2-vl") -> Path:
    """The directory that holds `tiny-<architecture>`, as `epd run --models` takes it; made if it is not there."""
    identity = hashlib.sha256(SCRIPT.read_bytes() + environment.directory.name.encode()).hexdigest()[:16]
    models = cache_directory() / f"models-{identity}"
    folder = models / f"tiny-{architecture}"
    command = [str(environment.python), str(SCRIPT), str(folder), "--architecture", architecture]
    if not (folder / "config.json").exists():
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            raise ModelError(f"{SCRIPT.name} {architecture}: {made.stderr.strip()}")
    return models
