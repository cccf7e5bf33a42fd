"""The local cluster as a whole: what starts, what stops, and what it is reached by."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.cache import locked
from hack.cluster.controlplane import ControlPlane
from hack.cluster.daemons import Daemons
from hack.cluster.kubectl import Kubectl
from hack.cluster.ports import free_ports
from hack.cluster.programs import Programs, build
from hack.cluster.settings import Layout, Settings

READY_SECONDS = 120.0


@dataclass(frozen=True)
class LocalCluster:
    """A cluster in a directory, running or not."""

    layout: Layout
    programs: Programs
    daemons: Daemons

    @property
    def kubectl(self) -> Kubectl:
        """The cluster as its administrator sees it."""
        return Kubectl(
            program=[self.programs.localcluster, "kubectl"],
            kubeconfig=self.layout.kubeconfig(),
            cache=self.layout.directory / "kubectl-cache",
        )

    def control_plane(self, settings: Settings, *, with_node: bool = False) -> ControlPlane:
        """The control plane of this cluster under some settings."""
        return ControlPlane(settings, self.layout, self.programs, self.daemons, with_node)


@contextmanager
def temporary_control_plane(
    *, audit: bool = False, report: Callable[[str], None] = print, keep_logs: Path | None = None
) -> Iterator[LocalCluster]:
    """A control plane of its own for one program, such as a test run; several can run at once.

    It ends with the context, and with the program if that is killed. `keep_logs`: a directory that gets the logs.
    """
    programs = build(node=False, report=report)
    with tempfile.TemporaryDirectory(prefix="epd-cluster-") as temporary, free_ports() as ports:
        layout = Layout(Path(temporary))
        cluster = LocalCluster(layout, programs, Daemons(layout.directory, end_with_parent=True))
        control_plane = cluster.control_plane(Settings(ports=ports, audit=audit))
        try:
            control_plane.start(READY_SECONDS)
            yield cluster
        finally:
            control_plane.stop()
            if keep_logs:
                shutil.copytree(layout.directory / "logs", keep_logs, dirs_exist_ok=True)


@contextmanager
def kept_cluster(directory: Path) -> Iterator[LocalCluster]:
    """The cluster of a directory, held against other calls of the tool while the context lasts."""
    layout = Layout(directory.resolve())
    with locked(layout.directory / "lock"):
        yield LocalCluster(layout, build(node=False), Daemons(layout.directory))
