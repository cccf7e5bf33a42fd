"""Put the sources of a vLLM release in the cache, and print the folder that goes on PYTHONPATH.

    python -m hack.vllm.fetch 0.33        # one release
    python -m hack.vllm.fetch             # all that are pinned

They are asked and introspected in the engine environment (`hack/engine_env.py`), so their compiled parts are dropped:
400 to 800 MB a release shrink to 60. A folder lies in ``$EPD_CACHE/releases/<release>-<hash of its pins>``.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from hack import engine_env

PINS = engine_env.REQUIREMENTS / "releases"


class FetchError(Exception):
    """A release cannot be fetched; the message says why and what to do."""


def installed_minor() -> str:
    """The release that the engine environment itself has: major.minor."""
    return engine_env.VLLM_VERSION.rpartition(".")[0]


def pinned() -> list[str]:
    """Every release that can be asked, oldest first: major.minor."""
    minors = {path.stem for path in PINS.glob("*.txt")} | {installed_minor()}
    return sorted(minors, key=lambda minor: tuple(int(part) for part in minor.split(".")))


def site_packages(engine: engine_env.EngineEnvironment) -> Path:
    """Where the engine environment has its own release."""
    [folder] = engine.directory.glob("lib/python*/site-packages")
    return folder


def ensure(minor: str, cache: Path | None = None) -> Path:
    """The folder that holds the release's ``vllm`` package, fetched first if it is not there.

    Raises FetchError where there are no pins for the release or they cannot be installed, and EngineEnvironmentError
    where the release is the installed one and the environment cannot be made.
    """
    if minor == installed_minor():
        return site_packages(engine_env.ensure(cache))
    pins = PINS / f"{minor}.txt"
    if not pins.is_file():
        raise FetchError(f"{pins}: no pins for vLLM {minor}; `make release RELEASE={minor}.0` writes them")
    digest = hashlib.sha256(pins.read_bytes()).hexdigest()[:12]
    target = (cache or engine_env.cache_directory()) / "releases" / f"{minor}-{digest}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_name(f"{target.name}.lock")):
            if not target.exists():
                _install(pins, target)
    return target


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _install(pins: Path, target: Path) -> None:
    building = target.with_name(f"{target.name}.building")
    shutil.rmtree(building, ignore_errors=True)
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv), "pip", "install", "--quiet", "--python", sys.executable, "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "--target", str(building), "--requirements", str(pins)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise FetchError(f"{pins}: cannot be installed: {result.stderr.strip()}")
    for library in building.glob("vllm/**/*.so"):
        library.unlink()
    building.rename(target)


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("release", nargs="?", help="0.33, or 0.33.0; all where none is given")
    given = options.parse_args()
    wanted = [".".join(given.release.split(".")[:2])] if given.release else pinned()
    try:
        for minor in wanted:
            print(ensure(minor))
    except (FetchError, engine_env.EngineEnvironmentError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
