"""What is borrowed from Kubernetes' pods: environment variables, resources and the overlay on a pod."""

from typing import Annotated

from pydantic import Field

from epd_operator.api.base import Annotations, APIModel, Labels, OpenObject, Str
from epd_operator.api.quantity import Quantity


class EnvVar(APIModel):
    """One environment variable, in Kubernetes' shape."""

    name: Annotated[Str, Field(max_length=256, pattern=r"^[-._a-zA-Z][-._a-zA-Z0-9]*$")]
    """Name of the variable."""
    value: Annotated[str, Field(strict=True, max_length=32768)] | None = None
    """Its value. Default: empty."""
    value_from: OpenObject | None = None
    """Kubernetes' EnvVarSource, for example {secretKeyRef: {name, key}}. Not together with value."""


class PodTemplateMetadata(APIModel):
    """Labels and annotations added to the pods."""

    labels: Labels | None = None
    """Added to the pods; never part of a selector. A change restarts the role."""
    annotations: Annotations | None = None
    """Added to the pods. A change restarts the role."""


class PodTemplate(APIModel):
    """An overlay on the pods of a role, for all that has no field of its own."""

    metadata: PodTemplateMetadata | None = None
    """Labels and annotations added to the pods."""
    spec: OpenObject | None = None
    """Kubernetes' PodSpec, merged into the pods by name: node selectors, tolerations, affinity, volumes, sidecars,
    priority class and so on. The engine's container is named `engine`, the proxy's `proxy`. A change restarts it."""


class Resources(APIModel):
    """Kubernetes' ResourceRequirements of the container."""

    limits: dict[str, Quantity] | None = None
    """Upper bounds. The memory limit is the total, shared memory (/dev/shm) included. A device is added by itself."""
    requests: dict[str, Quantity] | None = None
    """What the scheduler reserves. Default: the limits."""
    claims: list[OpenObject] | None = None
    """Kubernetes' ResourceClaims (DRA); they replace the extended resource."""
