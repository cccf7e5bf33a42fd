"""The engine: which vLLM, and what all of its instances have in common."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from epd_operator.api.base import MAP_BY_NAME, APIModel, Argument, Name, NoDuplicates, Str
from epd_operator.api.pod import EnvVar


class ImagePullPolicy(StrEnum):
    """Kubernetes' image pull policies."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class LocalObjectReference(APIModel):
    """An object of the same namespace, by name."""

    name: Name
    """Name of the object."""


ImagePullSecrets = Annotated[list[LocalObjectReference], NoDuplicates, Field(json_schema_extra=MAP_BY_NAME)]
ImageReference = Annotated[Str, Field(max_length=512, pattern=r"^[^\s]+$")]


class Engine(APIModel):
    """The vLLM release, its image, and settings of every role."""

    version: Annotated[Str, Field(max_length=64)] | None = None
    """vLLM release, for example 0.33.0: decides which rules, flags and wire formats hold. Default: read from the
    image's tag. A change makes a new revision."""
    image: ImageReference | None = None
    """Image of every engine container. Default: vLLM's published image for version and device. A change makes a new
    revision."""
    image_pull_policy: ImagePullPolicy | None = None
    """Always, IfNotPresent or Never. Default: as Kubernetes decides by tag. A change restarts all roles."""
    image_pull_secrets: ImagePullSecrets | None = None
    """Secrets for pulling images, in every pod. A change restarts all roles."""
    args: list[Argument] | None = None
    """Extra vLLM flags for every role, before the role's own."""
    env: Annotated[list[EnvVar], NoDuplicates, Field(json_schema_extra=MAP_BY_NAME)] | None = None
    """Extra environment variables for every role."""
