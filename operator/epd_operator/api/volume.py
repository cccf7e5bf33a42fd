"""Volumes that a deployment refers to."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from epd_operator.api.base import APIModel, Bool, Name, Str
from epd_operator.api.engine import ImagePullPolicy
from epd_operator.api.quantity import Quantity


class ClaimSource(APIModel):
    """A PersistentVolumeClaim of the same namespace."""

    claim_name: Name
    """Name of the claim."""
    read_only: Bool | None = None
    """Mount it read-only. Default false."""


class HostPathType(StrEnum):
    """What must be at a path of the node; of Kubernetes' types those that make a directory."""

    DIRECTORY = "Directory"
    DIRECTORY_OR_CREATE = "DirectoryOrCreate"


def _no_dots(path: str) -> str:
    if ".." in path.split("/"):
        raise PydanticCustomError("host_path", "must not contain '..'")
    return path


class HostPathSource(APIModel):
    """A directory of the node."""

    path: Annotated[Str, Field(pattern=r"^/"), AfterValidator(_no_dots)]
    """Absolute path on the node, without `..`."""
    type: HostPathType | None = None
    """Kubernetes' HostPathType, for example Directory. Default: no check."""


class EmptyDirSource(APIModel):
    """A directory that lives and dies with its pod."""

    medium: Annotated[str, Field(pattern=r"^(Memory)?$")] | None = None
    """Memory, or the node's default medium."""
    size_limit: Quantity | None = None
    """Upper bound, bytes. Default: none."""


class ImageSource(APIModel):
    """An OCI image or artifact, mounted read-only."""

    reference: Str
    """Image reference."""
    pull_policy: ImagePullPolicy | None = None
    """Always, IfNotPresent or Never. Default: as Kubernetes decides by tag."""


class ModelVolume(APIModel):
    """Where model weights are, or are cached: exactly one source."""

    persistent_volume_claim: ClaimSource | None = None
    """A PersistentVolumeClaim of the namespace."""
    host_path: HostPathSource | None = None
    """A directory of each node. Forbidden by the baseline and restricted pod security standards."""
    empty_dir: EmptyDirSource | None = None
    """A directory of the pod: the weights are downloaded at each start."""
    image: ImageSource | None = None
    """An OCI image or artifact that holds the weights."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})

    @model_validator(mode="after")
    def _one_source(self) -> "ModelVolume":
        if len(self.model_fields_set) != 1:
            raise PydanticCustomError(
                "one_source", "needs exactly one of persistentVolumeClaim, hostPath, emptyDir and image"
            )
        return self


class SharedVolume(APIModel):
    """A directory that several instances share."""

    persistent_volume_claim: ClaimSource
    """A PersistentVolumeClaim of the namespace; ReadWriteMany where more than one node may mount it."""
