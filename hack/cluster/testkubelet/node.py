"""A node as the scheduler and the operator see it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hack.cluster.kubectl import Object

ROOM = {"cpu": "10000", "memory": "100000Gi", "ephemeral-storage": "100000Gi", "pods": "100000"}
HEARTBEAT_SECONDS = 10
LEASE_SECONDS = 40
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


@dataclass(frozen=True)
class Taint:
    """Keeps pods away that do not tolerate it."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True)
class NodeSpec:
    """A node to be: room for any number of pods, and what else it shall offer."""

    name: str
    resources: Mapping[str, str | int] = field(default_factory=dict)
    """Extended resources such as `nvidia.com/gpu`; also replaces the usual cpu, memory and so on."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()

    def object(self) -> Object:
        """The Node to create."""
        labels = {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": {**labels, **self.labels}},
            "spec": {"taints": [vars(taint) for taint in self.taints]},
        }

    def status(self, now: str) -> Object:
        """Its status, ready at the time `now`."""
        room = {**ROOM, **{name: str(amount) for name, amount in self.resources.items()}}
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "test kubelet is posting ready status",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        return {
            "capacity": room,
            "allocatable": room,
            "conditions": [ready],
            "addresses": [{"type": "Hostname", "address": self.name}],
        }


def lease(name: str, now: str) -> Object:
    """The heartbeat without which the control plane gives a node up; `now` with microseconds."""
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {"holderIdentity": name, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": now},
    }
