"""Who provides the cluster: a context that the user names, kind where there is Docker, else the local cluster."""

import json
import os
from collections.abc import Collection
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from hack.cluster.access import Access, to_any, to_local
from hack.cluster.errors import ClusterError
from hack.cluster.kind import Kind, docker_runs
from hack.cluster.local import kept_cluster
from hack.cluster.programs import build

USUAL_KUBECONFIG = Path("~/.kube/config")


class Name(StrEnum):
    """The providers."""

    GIVEN = "given"
    KIND = "kind"
    LOCAL = "local"


class Provider(Protocol):
    """One cluster, and what differs between those who provide it. All methods raise ClusterError."""

    def start(self) -> None:
        """Bring it up, if that is for us to do, and see that it answers."""

    def reach(self) -> Access:
        """Reach it, once it is up."""

    def stop(self) -> None:
        """Take it down, if we brought it up."""

    def load(self, archive: Path) -> str:
        """Put the images of a docker-archive on its nodes; returns what was done."""

    def has(self, reference: str) -> bool:
        """Whether its nodes have an image, as in `docker.io/library/name:tag`."""

    def forget(self, repository: str, kept: Collection[str]) -> None:
        """Remove the images of a name from its nodes, but some and those in use, where images pile up."""

    def set_gpus(self, count: int) -> None:
        """Let its nodes offer GPUs that they do not have."""


@dataclass(frozen=True)
class Choice:
    """A provider, and for a given cluster its kubeconfig and context."""

    name: Name
    kubeconfig: Path = Path()
    context: str = ""

    def provider(self, directory: Path) -> Provider:
        """The provider, with its files in `directory`."""
        match self.name:
            case Name.GIVEN:
                return Given(self.kubeconfig, self.context)
            case Name.KIND:
                return Kind(directory)
            case Name.LOCAL:
                return Local(directory)

    def save(self, directory: Path) -> None:
        """Remember it for later calls."""
        directory.mkdir(parents=True, exist_ok=True)
        _file(directory).write_text(json.dumps({**asdict(self), "kubeconfig": str(self.kubeconfig)}))


def choose(context: str = "") -> Choice:
    """A named context is taken; without one kind if Docker runs, else the local cluster."""
    if context:
        # Like kubectl, but of a list only the first file.
        kubeconfig = os.environ.get("KUBECONFIG", "").split(os.pathsep)[0] or USUAL_KUBECONFIG
        return Choice(Name.GIVEN, Path(kubeconfig).expanduser().resolve(), context)
    return Choice(Name.KIND if docker_runs() else Name.LOCAL)


def chosen(directory: Path) -> Choice:
    """What was chosen before; the local cluster if nothing was."""
    file = _file(directory)
    if not file.exists():
        return Choice(Name.LOCAL)
    stored = json.loads(file.read_text())
    return Choice(Name(stored["name"]), Path(stored["kubeconfig"]), stored["context"])


def forget(directory: Path) -> None:
    """Choose anew next time."""
    _file(directory).unlink(missing_ok=True)


@dataclass(frozen=True)
class Given:
    """Someone else's cluster: used, but neither made nor changed beyond what is installed into it."""

    kubeconfig: Path
    context: str

    def start(self) -> None:
        """See that it answers. Raises ClusterError."""
        self.reach().kubectl("get", "--raw=/readyz")

    def reach(self) -> Access:
        """By the user's kubeconfig. Raises ClusterError: there is none."""
        return to_any(self.kubeconfig, self.context)

    def stop(self) -> None:
        """Nothing: it was not started here."""

    def load(self, archive: Path) -> str:
        """Raises ClusterError: there is no common way into another cluster's nodes."""
        raise ClusterError(
            f"{archive}: images cannot be loaded into context {self.context}; push them to a registry it pulls from"
        )

    def has(self, reference: str) -> bool:
        """Raises ClusterError: there is no common way to ask."""
        raise ClusterError(f"{reference}: what the nodes of context {self.context} have cannot be told from here")

    def forget(self, repository: str, kept: Collection[str]) -> None:
        """Nothing: what its nodes have is not ours."""

    def set_gpus(self, count: int) -> None:
        """Raises ClusterError: another's nodes are not to be lied about."""
        raise ClusterError(f"context {self.context} was not made here, so its nodes do not get {count} pretended GPUs")


@dataclass(frozen=True)
class Local:
    """The cluster that is built from Go modules, with this machine as its node."""

    directory: Path

    def start(self) -> None:
        """Start what does not run. Raises ClusterError."""
        with kept_cluster(self.directory, node=True) as cluster:
            build(node=True)
            cluster.start()

    def reach(self) -> Access:
        """As its administrator. Raises ClusterError: it does not run."""
        with kept_cluster(self.directory) as cluster:
            if not cluster.daemons.running("kube-apiserver"):
                raise ClusterError(f"{self.directory} has no running cluster; start it with `up`")
            return to_local(cluster)

    def stop(self) -> None:
        """Stop it; data stays. Raises ClusterError."""
        with kept_cluster(self.directory) as cluster:
            cluster.stop()

    def load(self, archive: Path) -> str:
        """Import images into the node's runtime. Raises ClusterError."""
        with kept_cluster(self.directory) as cluster:
            cluster.require_node()
            return cluster.node.containerd.load(archive)

    def has(self, reference: str) -> bool:
        """Ask the node's runtime. Raises ClusterError."""
        with kept_cluster(self.directory) as cluster:
            cluster.require_node()
            return cluster.node.containerd.has(reference)

    def forget(self, repository: str, kept: Collection[str]) -> None:
        """Let the node's runtime remove them. Raises ClusterError."""
        with kept_cluster(self.directory) as cluster:
            cluster.require_node()
            cluster.node.containerd.forget(repository, kept)

    def set_gpus(self, count: int) -> None:
        """Change what the node offers; remembered. Raises ClusterError."""
        with kept_cluster(self.directory, fake_gpus=count) as cluster:
            cluster.require_node()
            cluster.settings.save(cluster.layout.settings)
            cluster.node.set_gpus(count)


def _file(directory: Path) -> Path:
    return directory / "provider.json"
