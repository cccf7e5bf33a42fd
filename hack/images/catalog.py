"""Which images there are, what they are made from, and what they are called."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from epd_operator import __version__
from hack.cluster.cache import digest
from hack.engine_env import VLLM_VERSION

ROOT = Path(__file__).parents[2]
UNCOUNTED = {"__pycache__"}


@dataclass(frozen=True)
class Image:
    """One image and the files of the project that it is made from."""

    name: str
    directory: str
    version: str
    inputs: tuple[str, ...]
    """Files and folders below the project's directory."""
    large: bool = False
    """Gigabytes: built in one go, since each kept layer is a copy."""

    @property
    def dockerfile(self) -> Path:
        """Its Dockerfile; the build's context is the project's directory."""
        return ROOT / "images" / self.directory / "Dockerfile"

    def reference(self) -> str:
        """Name and tag, as in a pod. The tag is the version and 12 digits that change with what the image is made from.

        So a node never runs a stale one. Sources may change meanwhile: ask once.
        """
        return f"{self.name}:{self.version}-{digest(ROOT, self.files())}"

    def files(self) -> Iterator[Path]:
        """Every file that it is made from."""
        yield self.dockerfile
        for name in self.inputs:
            path = ROOT / name
            found = path.rglob("*") if path.is_dir() else [path]
            yield from (file for file in found if file.is_file() and not UNCOUNTED & set(file.parts))


_PYTHON = ("images/download", "pyproject.toml", "LICENSE", "README.md", "requirements/bootstrap.txt")
_SOURCES = ("requirements/dev.txt", "operator", "proxy")

OPERATOR = Image("epd-operator", "operator", __version__, (*_PYTHON, *_SOURCES, "requirements/operator.txt"))
PROXY = Image("epd-proxy", "proxy", __version__, (*_PYTHON, *_SOURCES, "requirements/proxy.txt"))
ENGINE_CPU = Image(
    "epd-engine-cpu",
    "engine-cpu",
    VLLM_VERSION,
    (
        "images/download",
        "hack/engine_env.py",
        "requirements/bootstrap.txt",
        "requirements/engine-cpu.txt",
        "requirements/engine-nixl.txt",
    ),
    large=True,
)

ENGINE_SIM = Image("epd-engine-sim", "engine-sim", "sim", ("tests/simulator/dialect.py", "tests/simulator/vllm"))

IMAGES = {image.directory: image for image in (OPERATOR, PROXY, ENGINE_CPU, ENGINE_SIM)}
"""By their folders in images/."""
