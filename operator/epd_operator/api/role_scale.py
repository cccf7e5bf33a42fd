"""EPDRoleScale: the number of instances of one role, owned by an autoscaler."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from epd_operator.api.base import APIModel, Count, Name, OpenObject
from epd_operator.api.deployment import ObjectMeta
from epd_operator.api.role import Role

SCALE_KIND = "EPDRoleScale"
SCALE_PLURAL = "epdrolescales"


class EPDRoleScaleSpec(APIModel):
    """Which role, and how many instances."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "self.deployment == oldSelf.deployment && self.role == oldSelf.role",
                    "message": "deployment and role are immutable: delete the object and create it anew",
                }
            ]
        }
    )

    deployment: Name
    """Name of the EPDDeployment in the same namespace. Immutable."""
    role: Role
    """encode, prefill or decode. Immutable."""
    replicas: Count
    """Instances wanted. Seeded by the operator with the current count, then written by an autoscaler or `kubectl
    scale` only."""


class EPDRoleScaleStatus(APIModel):
    """What the operator made of it."""

    observed_generation: Annotated[int, Field(ge=0)] | None = None
    """Generation that the status speaks of."""
    replicas: int = 0
    """Instances that exist."""
    selector: str = ""
    """Label selector of the role's pods, for autoscalers."""


class EPDRoleScale(APIModel):
    """The number of instances of one role of an EPDDeployment whose scaling.mode is External."""

    api_version: Literal["epd.dev/v1alpha1"]
    kind: Literal["EPDRoleScale"]
    metadata: ObjectMeta
    spec: EPDRoleScaleSpec
    status: OpenObject | None = None
