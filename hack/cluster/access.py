"""Ways to reach a cluster, whoever made it."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.cache import cache_directory
from hack.cluster.errors import ClusterError
from hack.cluster.kubectl import Kubectl
from hack.cluster.local import LocalCluster
from hack.cluster.tools import tool


@dataclass(frozen=True)
class Access:
    """A cluster for programs and tests."""

    kubectl: Kubectl
    audit_log: Path | None = None
    """Where every request is written, if the cluster does so and the file can be read here."""

    @property
    def kubeconfig(self) -> Path:
        """For any other client."""
        return self.kubectl.kubeconfig


def to_local(cluster: LocalCluster) -> Access:
    """To a local cluster."""
    log = cluster.layout.audit_log
    return Access(cluster.kubectl, log if log.exists() else None)


def to_any(kubeconfig: Path, context: str = "") -> Access:
    """To the cluster of a kubeconfig, by its current context unless another is named.

    Raises ClusterError: there is no such file.
    """
    if not kubeconfig.is_file():
        raise ClusterError(f"{kubeconfig}: no such kubeconfig")
    found = shutil.which("kubectl")
    kubectl = Kubectl(
        program=[found or tool("kubectl")],
        kubeconfig=kubeconfig,
        cache=cache_directory() / "kubectl-cache",
        context=context,
        # Its users may need programs and variables of the user's own environment, to sign in for example.
        environment=dict(os.environ),
    )
    return Access(kubectl)
