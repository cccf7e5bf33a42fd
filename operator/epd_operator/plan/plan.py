"""The plan: a frozen value that says everything that will exist for one object, and prints well.

Sizes are bytes, times seconds. Mappings and sources are in Kubernetes' own shapes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from epd_operator.api.device import Device
from epd_operator.api.finding import Finding
from epd_operator.api.pod import PodTemplate, Resources
from epd_operator.api.proxy import ServiceType
from epd_operator.api.role import Role, Topology
from epd_operator.engine.command import Command
from epd_operator.engine.drain import Drain
from epd_operator.engine.memory import SharedMemoryUse
from epd_operator.engine.release import Release
from epd_operator.engine.wiring import Defaults, Wiring
from epd_operator.plan.rollout import RolloutPlan


@dataclass(frozen=True, slots=True)
class Port:
    """A port that an instance listens on."""

    name: str
    """At most 15 characters, as Kubernetes' port names."""
    number: int


@dataclass(frozen=True, slots=True)
class Mount:
    """A volume of a pod and where its engine sees it."""

    name: str
    path: str
    source: Mapping[str, Any]
    """Kubernetes' volume source, for example {"emptyDir": {}}."""
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class RolePlan:
    """The instances of one role in one revision."""

    role: Role
    name: str
    """Of its Deployment and headless Service."""
    replicas: int
    external_scaling: bool
    """An EPDRoleScale decides the replicas."""
    image: str
    image_pull_policy: str | None
    image_pull_secrets: tuple[str, ...]
    command: Command
    ports: tuple[Port, ...]
    device: Device
    device_count: int
    """Devices of one instance; 0 on CPU or with resource claims."""
    device_resource: str | None
    """Extended resource that stands for one device; None on CPU or with resource claims."""
    node_labels: Mapping[str, str]
    """Labels that a node must have (product)."""
    resources: Resources
    """As written, without the device."""
    shared_memory_bytes: int
    shared_memory_uses: tuple[SharedMemoryUse, ...]
    mounts: tuple[Mount, ...]
    directories: tuple[str, ...]
    """Directories of shared volumes that are made before the engine starts."""
    startup_seconds: int
    progress_deadline_seconds: int
    """Without progress for so long a rollout of the role has failed."""
    drain: Drain
    preprocessing_device: str
    """Where media become tensors in effect: cpu, cuda, xpu."""
    overlay: PodTemplate | None
    selector: Mapping[str, str]
    labels: Mapping[str, str]
    """Of the workload and its pods: the selector's and the standard ones."""
    service_labels: Mapping[str, str]
    """Of the headless Service, and so of its EndpointSlices."""
    template_hash: str
    """Of all that is in the pod; not of replicas."""


@dataclass(frozen=True, slots=True)
class ProxyPlan:
    """The proxy: its pods, Service and configuration."""

    name: str
    replicas: int
    cluster_role: str
    """ClusterRole of the chart that lets it read EndpointSlices."""
    image: str
    image_pull_policy: str | None
    image_pull_secrets: tuple[str, ...]
    served_name: str
    roles: tuple[Role, ...]
    """Roles that must be there before the proxy is ready."""
    service_type: ServiceType
    port: int
    service_annotations: Mapping[str, str]
    settings: Mapping[str, Any]
    """Settings that the user wrote, in the shape of the proxy's configuration; the rest are the proxy's defaults."""
    drain_seconds: int
    """How long running requests may still take."""
    keep_alive_seconds: int
    """How long engines keep an idle connection."""
    api_keys_secret: str | None
    resources: Resources
    overlay: PodTemplate | None
    selector: Mapping[str, str]
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class PrunerPlan:
    """The job that keeps a shared embeddings directory from filling up, since vLLM never removes anything from it."""

    name: str
    image: str
    image_pull_policy: str | None
    image_pull_secrets: tuple[str, ...]
    claim: str
    directory: str
    """Mounted directory of the claim; the deployment's files are below `directory/name`."""
    older_than_seconds: int
    """Files read or written within this time stay, whatever the size."""
    keep_bytes: int | None
    """What may stay of older files; None removes all of them."""
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that will exist for one object."""

    name: str
    namespace: str
    topology: Topology
    release: Release
    revision: str
    """Hash of what all roles must agree on; scopes names and routing."""
    roles: tuple[RolePlan, ...]
    proxy: ProxyPlan
    pruner: PrunerPlan | None
    rollout: RolloutPlan
    defaults: Defaults
    """Connectors in effect, to be kept in the status."""
    suspended: bool
    wiring: Wiring = field(repr=False)
    """The object as vLLM sees it; commands for other sites are made from it."""
    warnings: tuple[Finding, ...] = ()

    def role(self, role: Role) -> RolePlan | None:
        """The plan of one role; None if the deployment does not have it."""
        return next((plan for plan in self.roles if plan.role is role), None)
