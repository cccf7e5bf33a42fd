"""What the operator reports about a deployment."""

from typing import Annotated

from pydantic import Field

from epd_operator.api.base import APIModel
from epd_operator.api.role import Topology


class Condition(APIModel):
    """Kubernetes' metav1.Condition."""

    type: str
    """Accepted, DevicesAvailable, Available, Ready, Reconciling or Stalled."""
    status: Annotated[str, Field(pattern=r"^(True|False|Unknown)$")]
    """True, False or Unknown."""
    reason: Annotated[str, Field(max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """CamelCase word for programs."""
    message: Annotated[str, Field(max_length=32768)] = ""
    """Sentence for people, with the words of the kubelet or API server where there are any."""
    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    """When status last changed, RFC 3339."""
    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """Generation of the object that the condition speaks of."""


class RoleStatus(APIModel):
    """One role, counted in instances."""

    desired: int = 0
    """Instances asked for."""
    ready: int = 0
    """Instances that serve."""
    updated: int = 0
    """Instances of the target revision and template."""
    summary: str = ""
    """ready/desired, for columns."""
    preprocessing_device: str | None = None
    """Of encode: where media become tensors in effect, as vLLM names it (cpu, cuda ...)."""


class RolesStatus(APIModel):
    """Each role that the deployment has."""

    encode: RoleStatus | None = None
    """The encoders."""
    prefill: RoleStatus | None = None
    """The prefill instances."""
    decode: RoleStatus | None = None
    """The decode instances."""


class ProxyStatus(APIModel):
    """The proxy, counted in pods."""

    desired: int = 0
    """Pods asked for."""
    ready: int = 0
    """Pods that serve."""
    summary: str = ""
    """ready/desired."""


class DefaultsStatus(APIModel):
    """Defaults that were chosen for the deployment and stay, whatever a later operator would choose."""

    embeddings_connector: str | None = None
    """Connector between encoder and consumer."""
    kv_connector: str | None = None
    """Connector between prefill and decode."""


class Status(APIModel):
    """What the operator last saw and decided."""

    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """Generation of the object that the status speaks of."""
    conditions: Annotated[
        list[Condition],
        Field(
            default_factory=list,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
        ),
    ]
    """Accepted, DevicesAvailable, Available, Ready, Reconciling, Stalled."""
    topology: Topology | None = None
    """Inferred from the roles present: PD, P+D, E+PD or E+P+D."""
    roles: RolesStatus | None = None
    """Each role that the deployment has."""
    proxy: ProxyStatus | None = None
    """The proxy."""
    defaults: DefaultsStatus | None = None
    """Defaults that were chosen and stay."""
    engine_version: str | None = None
    """vLLM release of the target revision."""
    current_revision: str | None = None
    """Revision that serves, or the last that did."""
    target_revision: str | None = None
    """Revision that the spec asks for."""
    url: str | None = None
    """Base URL of the API inside the cluster."""
