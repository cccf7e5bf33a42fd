"""A base image from the packages of this machine's Debian, for builds that have no registry to take one from."""

import tempfile
from pathlib import Path

from hack.cluster.cache import digest
from hack.cluster.command import run
from hack.images.buildah import Buildah, require

NAME = "epd-base"
PACKAGES = ("ca-certificates", "python3", "python3-venv")
EXCLUDED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/info/*", "/usr/share/locale/*")
SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))


def base_image(buildah: Buildah, *, renew: bool = False) -> str:
    """Name of the base image in buildah's store, made when it is not there or is to be renewed.

    It has Debian's Python with its venv module, from the apt sources of this machine.

    Raises MissingPrerequisite: mmdebstrap is missing, or this is no Debian.
    Raises ClusterError: a package cannot be had.
    """
    name = f"{NAME}:{digest(Path(__file__).parent, [Path(__file__)])}"
    if buildah.has(name) and not renew:
        return name
    sources = next((path for path in SOURCES if path.exists()), None)
    require("mmdebstrap", where_none=None if sources else "no apt sources of a Debian are in /etc/apt")
    with tempfile.TemporaryDirectory(dir=buildah.scratch) as temporary:
        archive = Path(temporary) / "base.tar"
        options = [f"--dpkgopt=path-exclude={pattern}" for pattern in EXCLUDED]
        run(
            "nice", "-n", "15", "mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}",
            *options, _codename(), archive, str(sources),
        )  # fmt: skip
        buildah.commit_archive(archive, name)
    return name


def _codename() -> str:
    lines = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    return lines.get("VERSION_CODENAME", "stable").strip('"')
