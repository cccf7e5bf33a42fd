"""A cluster by kind, where there is Docker."""

import json
import os
import shutil
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.access import Access, to_any
from hack.cluster.cache import cache_directory, locked
from hack.cluster.errors import ClusterError, MissingPrerequisite
from hack.cluster.node import GPU

VERSION = "v0.33.0"
NAME = "epd"
CONFIGURATION = Path(__file__).parents[1] / "kind.yaml"
READY_SECONDS = 180


def docker_runs() -> bool:
    """Whether there is a Docker client here and a daemon that answers it."""
    if not shutil.which("docker"):
        return False
    return not subprocess.run(["docker", "info"], capture_output=True, check=False).returncode


def kind_program() -> Path:
    """The `kind` of the PATH, else one built into the cache.

    Raises MissingPrerequisite: there is neither kind nor Go.
    Raises ClusterError: the build fails.
    """
    if found := shutil.which("kind"):
        return Path(found)
    directory = cache_directory() / f"kind-{VERSION}"
    if not (directory / "kind").exists():
        if not shutil.which("go"):
            raise MissingPrerequisite("there is neither `kind` nor `go` on the PATH; install one of them")
        with locked(directory / ".lock"):
            environment = {**os.environ, "GOBIN": str(directory), "CGO_ENABLED": "0"}
            _run(["go", "install", "-trimpath", f"sigs.k8s.io/kind@{VERSION}"], environment)
    return directory / "kind"


@dataclass(frozen=True)
class Kind:
    """The project's kind cluster, and its kubeconfig in a directory."""

    directory: Path

    @property
    def kubeconfig(self) -> Path:
        """Its kubeconfig; the user's own is left alone."""
        return self.directory / "kind.kubeconfig"

    def start(self) -> None:
        """Make the cluster unless it is there, and wait until it is ready. Raises ClusterError."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if NAME in self._kind("get", "clusters").split():
            self._kind("export", "kubeconfig", f"--kubeconfig={self.kubeconfig}")
        else:
            wait = f"--wait={READY_SECONDS}s"
            self._kind("create", "cluster", f"--config={CONFIGURATION}", f"--kubeconfig={self.kubeconfig}", wait)

    def reach(self) -> Access:
        """By its own kubeconfig. Raises ClusterError: it was not started."""
        return to_any(self.kubeconfig)

    def stop(self) -> None:
        """Delete the cluster. Raises ClusterError."""
        self._kind("delete", "cluster", f"--kubeconfig={self.kubeconfig}")

    def load(self, archive: Path) -> str:
        """Load the images of a docker-archive into every node. Raises ClusterError."""
        self._kind("load", "image-archive", str(archive))
        return f"loaded {archive} into kind cluster {NAME}"

    def has(self, reference: str) -> bool:
        """Ask the runtime of every node. Raises ClusterError."""
        nodes = self._kind("get", "nodes").split()
        lists = [
            _run(["docker", "exec", node, "ctr", "-n=k8s.io", "images", "list", "-q"], dict(os.environ))
            for node in nodes
        ]
        return bool(nodes) and all(reference in images.split() for images in lists)

    def forget(self, repository: str, kept: Collection[str]) -> None:
        """Nothing: the nodes, and what they have, go with the cluster."""

    def set_gpus(self, count: int) -> None:
        """Let every node offer GPUs that it does not have. A node's restart forgets them. Raises ClusterError."""
        kubectl = self.reach().kubectl
        patch = json.dumps({"status": {"capacity": {GPU: str(count)}, "allocatable": {GPU: str(count)}}})
        for node in kubectl.items("get", "nodes"):
            kubectl("patch", "node", node["metadata"]["name"], "--subresource=status", "--type=merge", f"-p={patch}")

    @staticmethod
    def _kind(*args: str) -> str:
        named = [] if args[0] in ("get", "create") else [f"--name={NAME}"]
        return _run([str(kind_program()), *args, *named], dict(os.environ))


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise ClusterError(f"{' '.join(command)}: exit {done.returncode}\n{(done.stdout + done.stderr).strip()}")
    return done.stdout
