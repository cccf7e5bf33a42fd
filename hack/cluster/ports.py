"""The ports of a cluster."""

import fcntl
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from hack.cluster.errors import ClusterError

# Below the range that Linux takes for outgoing connections (32768 and up), above the well-known servers.
BLOCKS_START, BLOCK_SIZE, BLOCKS = 24000, 16, 128


@dataclass(frozen=True)
class Ports:
    """By default the ports that Kubernetes documents."""

    apiserver: int = 6443
    etcd: int = 2379
    etcd_peer: int = 2380
    controller_manager: int = 10257
    scheduler: int = 10259
    kubelet: int = 10250
    kubelet_health: int = 10248
    proxy_health: int = 10256
    proxy_metrics: int = 10249

    @classmethod
    def block(cls, first: int) -> "Ports":
        """Consecutive ports from `first`, for a cluster beside others."""
        return cls(*range(first, first + len(fields(cls))))


@contextmanager
def free_ports() -> Iterator[Ports]:
    """Ports that no other cluster of this machine takes while the context lasts, and that are free now.

    Raises ClusterError: every block is in use.
    """
    for first in range(BLOCKS_START, BLOCKS_START + BLOCKS * BLOCK_SIZE, BLOCK_SIZE):
        ports = Ports.block(first)
        with (Path(tempfile.gettempdir()) / f"epd-cluster-ports-{first}.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            if all(is_free("127.0.0.1", getattr(ports, field.name)) for field in fields(ports)):
                yield ports
                return
    raise ClusterError(f"no free block of ports from {BLOCKS_START}: {BLOCKS} other clusters or servers are in the way")


def is_free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
