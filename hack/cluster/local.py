"""The local cluster as a whole: what starts, what stops, and what it is reached by."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.cache import locked
from hack.cluster.controlplane import ControlPlane
from hack.cluster.daemons import Daemons
from hack.cluster.errors import ClusterError
from hack.cluster.kubectl import Kubectl
from hack.cluster.node import Node, require_node_programs
from hack.cluster.ports import free_ports
from hack.cluster.programs import Programs, build, programs
from hack.cluster.settings import Layout, Settings

READY_SECONDS = 120.0

Report = Callable[[str], None]

_IMAGES = {"containerd", "imported"}
"""Folders of the runtime's store, and of what was put there from the built programs."""


@dataclass(frozen=True)
class LocalCluster:
    """A cluster in a directory, running or not."""

    layout: Layout
    programs: Programs
    daemons: Daemons
    settings: Settings

    @property
    def kubectl(self) -> Kubectl:
        """The cluster as its administrator sees it."""
        return Kubectl(
            program=[self.programs.localcluster, "kubectl"],
            kubeconfig=self.layout.kubeconfig(),
            cache=self.layout.directory / "kubectl-cache",
        )

    @property
    def node(self) -> Node:
        """The machine as its node; see `settings.node` for whether it is one."""
        return Node(self.settings, self.layout, self.programs, self.daemons, self.kubectl)

    @property
    def _control_plane(self) -> ControlPlane:
        return ControlPlane(self.settings, self.layout, self.programs, self.daemons)

    def start(self, report: Report = print) -> None:
        """Start what does not run, and wait until all of it is ready.

        Raises MissingPrerequisite: this machine cannot be the node that the settings ask for.
        Raises ClusterError: something does not come up.
        """
        began = time.monotonic()
        if self.settings.node:
            require_node_programs(self.layout)
        self.settings.save(self.layout.settings)
        if self.settings.node:
            self.node.host.prepare()
        self._control_plane.start(READY_SECONDS)
        report(f"control plane ready after {time.monotonic() - began:.1f} s")
        if self.settings.node:
            self.node.start(READY_SECONDS)
            report(f"node and name server ready after {time.monotonic() - began:.1f} s")

    def stop(self) -> None:
        """End everything that was started. Data stays, and so do the settings."""
        if self.settings.node:
            self.node.stop()
        self._control_plane.stop()
        if self.node.host.prepared:  # last, since the API server's address goes with it
            self.node.host.undo(self.programs)

    def require_node(self) -> None:
        """Raises ClusterError: the node does not run."""
        if not self.daemons.running("kubelet"):
            raise ClusterError(f"{self.layout.directory} has no running node; start it with `up`")

    def wipe(self, *, images: bool = True) -> None:
        """Remove a stopped cluster's data and certificates and, with `images`, what was loaded into its runtime.

        Raises ClusterError: something still runs.
        """
        if running := self.daemons.names():
            raise ClusterError(f"{self.layout.directory} is in use by {', '.join(running)}; stop the cluster first")
        kept = {self.layout.lock.name, "in-use"} | (set() if images else _IMAGES)
        for entry in self.layout.directory.iterdir():
            if entry.name in kept:
                continue
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()


@contextmanager
def temporary_control_plane(
    *, audit: bool = False, report: Report = print, keep_logs: Path | None = None
) -> Iterator[LocalCluster]:
    """A control plane of its own for one program, such as a test run; several can run at once.

    It ends with the context, and with the program if that is killed. `keep_logs`: a directory that gets the logs.

    Raises MissingPrerequisite: it was never built, and cannot be built here.
    Raises ClusterError: it does not come up.
    """
    built = build(node=False, report=report)
    with tempfile.TemporaryDirectory(prefix="epd-cluster-") as temporary, free_ports() as ports:
        layout = Layout(Path(temporary))
        settings = Settings(ports=ports, audit=audit)
        cluster = LocalCluster(layout, built, Daemons(layout.directory, end_with_parent=True), settings)
        try:
            cluster.start(report=lambda _: None)
            yield cluster
        finally:
            cluster.stop()
            if keep_logs:
                shutil.copytree(layout.directory / "logs", keep_logs, dirs_exist_ok=True)


@contextmanager
def temporary_node(directory: Path, report: Report = print) -> Iterator[None]:
    """A cluster with this machine as its node for one program; only images are kept in its directory.

    A second program that asks for the same directory waits for the first. What an earlier one left that was killed is
    cleared away. Raises MissingPrerequisite, ClusterError.
    """
    with locked(directory / "in-use"):
        try:
            with kept_cluster(directory) as cluster:
                build(node=True, report=report)
                cluster.stop()
                cluster.wipe(images=False)
            with kept_cluster(directory, node=True) as cluster:
                cluster.start(report)
            yield
        finally:
            with kept_cluster(directory) as cluster:
                cluster.stop()


@contextmanager
def kept_cluster(directory: Path, **changes: object) -> Iterator[LocalCluster]:
    """The cluster of a directory with its settings, and changes to them; no other call touches it meanwhile.

    The programs may not be built yet. Raises ClusterError: existing data forbids the changes.
    """
    layout = Layout(directory.resolve())
    with locked(layout.lock):
        settings = Settings.load(layout.settings).changed(**changes)
        yield LocalCluster(layout, programs(), Daemons(layout.directory), settings)
