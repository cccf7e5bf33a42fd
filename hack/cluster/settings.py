"""What a cluster is made of: addresses, names, ports; and where its files are."""

import dataclasses
import ipaddress
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from hack.cluster.errors import ClusterError
from hack.cluster.ports import Ports

FIXED = ("pod_cidr", "service_cidr")


@dataclass(frozen=True)
class Settings:
    """One cluster's settings, kept in its directory from the first start."""

    pod_cidr: str = "10.244.0.0/24"
    service_cidr: str = "10.96.0.0/16"
    bridge: str = "epd0"
    node_name: str = "node-0"
    node: bool = False
    """Whether the machine is a node of it. Without one the API server listens on loopback."""
    fake_gpus: int = 0
    """`nvidia.com/gpu` that the node pretends to have."""
    audit: bool = False
    """Whether the API server logs every request."""
    ports: Ports = field(default_factory=Ports)

    def __post_init__(self) -> None:
        try:
            pods, services = ipaddress.IPv4Network(self.pod_cidr), ipaddress.IPv4Network(self.service_cidr)
        except ValueError as error:
            raise ClusterError(f"pod or service range: {error}") from None
        if pods.prefixlen > 26 or not 12 <= services.prefixlen <= 27 or pods.overlaps(services):
            raise ClusterError(
                f"pod range {pods} and service range {services}: "
                "the first must be /26 or wider, the second /12 to /27, and they may not overlap"
            )

    @property
    def bridge_address(self) -> str:
        """The node on the pods' network, and so its API server and kubelet."""
        return str(ipaddress.IPv4Network(self.pod_cidr)[1])

    @property
    def apiserver_service(self) -> str:
        """The address of `kubernetes.default`."""
        return str(ipaddress.IPv4Network(self.service_cidr)[1])

    @property
    def dns_address(self) -> str:
        """The name server's Service."""
        return str(ipaddress.IPv4Network(self.service_cidr)[10])

    @classmethod
    def load(cls, file: Path) -> Self:
        """The settings of an earlier start; the defaults where there was none."""
        if not file.exists():
            return cls()
        stored = json.loads(file.read_text())
        return cls(**{**stored, "ports": Ports(**stored["ports"])})

    def save(self, file: Path) -> None:
        """Keep the settings for later calls."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(dataclasses.asdict(self), indent=1))

    def changed(self, **changes: object) -> Self:
        """A copy with some settings replaced; None changes nothing.

        Raises ClusterError: the change is one that existing data forbids.
        """
        given = {name: value for name, value in changes.items() if value is not None}
        for name in FIXED:
            if name in given and given[name] != getattr(self, name):
                raise ClusterError(
                    f"{name} is {getattr(self, name)} in the existing data; `down --wipe` before changing it"
                )
        return dataclasses.replace(self, **given)  # type: ignore[arg-type]  # dataclasses checks the names


@dataclass(frozen=True)
class Layout:
    """The files of one cluster, all below one directory."""

    directory: Path

    @property
    def lock(self) -> Path:
        """Held by the call that works on the cluster."""
        return self.directory / "lock"

    @property
    def settings(self) -> Path:
        """The stored settings."""
        return self.directory / "settings.json"

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self.directory / "pki"

    @property
    def configuration(self) -> Path:
        """Configuration files of the components."""
        return self.directory / "conf"

    @property
    def audit_log(self) -> Path:
        """One JSON object a line for each request, where auditing is on."""
        return self.directory / "audit.log"

    @property
    def runtime_socket(self) -> Path:
        """The container runtime's socket."""
        return self.directory / "containerd.sock"

    def kubeconfig(self, user: str = "admin") -> Path:
        """The kubeconfig of one identity."""
        return self.configuration / f"{user}.kubeconfig"


def write_if_changed(path: Path, text: str) -> Path:
    """Write a file in place unless it has this content; the runtime's network watcher does not see replaced files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path
