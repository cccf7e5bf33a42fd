"""The programs of the cluster, built from Go modules and kept in the cache."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.cache import cache_directory, digest, locked
from hack.cluster.errors import ClusterError, MissingPrerequisite

SOURCES = Path(__file__).parent / "go"
# Small, static, without paths of the machine: the programs also run in images that hold nothing else.
FLAGS = ("-trimpath", "-buildvcs=false", "-mod=readonly")


@dataclass(frozen=True)
class Programs:
    """Where the built programs are; a program that no one asked for yet is not there."""

    directory: Path

    @property
    def localcluster(self) -> Path:
        """etcd, the Kubernetes components and kubectl."""
        return self.directory / "localcluster"

    @property
    def coredns(self) -> Path:
        """The cluster's name server."""
        return self.directory / "coredns"

    @property
    def pause(self) -> Path:
        """The program that holds a pod's namespaces."""
        return self.directory / "pause"


def kubernetes_version() -> str:
    """The Kubernetes release that is built, as in `1.37.2`."""
    return _module_version("localcluster", "k8s.io/kubernetes")


def coredns_version() -> str:
    """The CoreDNS release that is built, as in `1.15.0`."""
    return _module_version("coredns", "github.com/coredns/coredns")


def programs() -> Programs:
    """Where the programs of these sources are, or would be."""
    files = [path for path in SOURCES.rglob("*") if path.is_file()]
    return Programs(cache_directory() / f"cluster-{digest(SOURCES, files)}")


def build(*, node: bool, report: Callable[[str], None] = print) -> Programs:
    """Build what is missing: the control plane and, with `node`, what a node needs beside it.

    Of several callers at once, in any process, one builds and the others wait for it. The first build takes about ten
    minutes on two cores.

    Raises MissingPrerequisite: there is no Go.
    Raises ClusterError: a build fails.
    """
    built = programs()
    wanted = [built.localcluster, *([built.coredns, built.pause] if node else [])]
    if all(path.exists() for path in wanted):
        return built
    if not shutil.which("go"):
        raise MissingPrerequisite(
            "the local cluster is built from Go modules, and there is no `go` on the PATH; install Go 1.26"
        )
    with locked(built.directory / ".lock"):
        for path in wanted:
            if not path.exists():
                _build(path, report)
    return built


def _build(program: Path, report: Callable[[str], None]) -> None:
    report(f"building {program.name}; the first time this can take minutes")
    start = time.monotonic()
    unfinished, sources = program.with_suffix(".unfinished"), SOURCES / program.name
    flags = [*FLAGS, "-ldflags", f"-s -w {_stamp(program.name)}"]
    command = ["nice", "-n", "10", "go", "build", *flags, "-o", str(unfinished), "."]
    environment = {**os.environ, "CGO_ENABLED": "0"}
    done = subprocess.run(command, cwd=sources, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"{' '.join(command)} in {sources} failed:\n{done.stderr.strip()[-4000:]}")
    unfinished.rename(program)
    report(f"built {program.name} ({program.stat().st_size / 1e6:.0f} MB) in {time.monotonic() - start:.0f} s")


def _stamp(name: str) -> str:
    """Linker flags that tell Kubernetes its own version, which its build scripts would do."""
    if name != "localcluster":
        return ""
    version = kubernetes_version()
    major, minor, _ = version.split(".", 2)
    module = "k8s.io/component-base/version"
    return f"-X {module}.gitVersion=v{version} -X {module}.gitMajor={major} -X {module}.gitMinor={minor}"


def _module_version(program: str, module: str) -> str:
    file = SOURCES / program / "go.mod"
    found = re.search(rf"^(?:require)?\s*{re.escape(module)} v(\S+)", file.read_text(), re.MULTILINE)
    if not found:
        raise ClusterError(f"{file}: no requirement of {module}")
    return found[1]
