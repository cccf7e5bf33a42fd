"""A role of the deployment: encode, prefill or decode, and the topology that the roles present make."""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from epd_operator.api.base import MAP_BY_NAME, APIModel, Argument, Count, Degree, NoDuplicates, Seconds
from epd_operator.api.device import Device
from epd_operator.api.pod import EnvVar, PodTemplate, Resources
from epd_operator.api.quantity import Quantity


class Role(StrEnum):
    """What an engine instance does."""

    ENCODE = "encode"
    PREFILL = "prefill"
    DECODE = "decode"


class Topology(StrEnum):
    """Which roles a deployment has; inferred, never typed by a user."""

    PD = "PD"
    P_D = "P+D"
    E_PD = "E+PD"
    E_P_D = "E+P+D"

    @classmethod
    def of(cls, *, encode: bool, prefill: bool) -> "Topology":
        """The topology of a deployment that has decode and, as said, the other two roles."""
        if encode:
            return cls.E_P_D if prefill else cls.E_PD
        return cls.P_D if prefill else cls.PD


class ScalingMode(StrEnum):
    """Who decides how many instances a role has."""

    EXTERNAL = "External"


class PreprocessingDevice(StrEnum):
    """Where media become tensors."""

    AUTO = "Auto"
    CPU = "CPU"
    ACCELERATOR = "Accelerator"


class TensorIPC(StrEnum):
    """vLLM's `--mm-tensor-ipc`: how tensors go from the API process to the engine process."""

    TORCH_SHM = "torch_shm"
    DIRECT_RPC = "direct_rpc"


class Scaling(APIModel):
    """Lets something else decide the number of instances."""

    mode: ScalingMode
    """External: an EPDRoleScale named <deployment>-<role> is made, seeded with the current count; an autoscaler writes
    its replicas and the operator follows. Changing it restarts nothing."""


class Preprocessing(APIModel):
    """How media become tensors; of the encode role only."""

    device: PreprocessingDevice | None = None
    """Auto (the default) uses the accelerator wherever vLLM allows it, CPU never, Accelerator always or not at all
    (`--mm-processor-device`). The outcome is in status.roles.encode.preprocessingDevice. A change restarts the role."""
    tensor_ipc: Annotated[TensorIPC | None, Field(alias="tensorIPC")] = None
    """vLLM's --mm-tensor-ipc. Default: torch_shm where tensor, pipeline and data parallelism are 1, else direct_rpc.
    torch_shm shares CPU tensors through /dev/shm and device tensors through device IPC. A change restarts the role."""


class Parallelism(APIModel):
    """How one instance spreads over devices: it takes tensor x pipeline x data of them."""

    tensor: Degree | None = None
    """vLLM's --tensor-parallel-size. Default 1. A change restarts the role."""
    pipeline: Degree | None = None
    """vLLM's --pipeline-parallel-size. Default 1. A change restarts the role."""
    data: Degree | None = None
    """vLLM's --data-parallel-size, all ranks in one pod. Default 1. A change restarts the role."""


class RoleSpec(APIModel):
    """One role: how many instances, on what, with which settings."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "!(has(self.replicas) && has(self.scaling))",
                    "message": "replicas and scaling exclude each other: with scaling, an autoscaler owns the number",
                }
            ]
        }
    )

    replicas: Count | None = None
    """Number of instances. Default 1; not together with scaling. A change restarts nothing."""
    scaling: Scaling | None = None
    """Lets an autoscaler decide the number of instances; not together with replicas."""
    device: Device | None = None
    """Device of this role. Default: spec.device. A change restarts the role."""
    preprocessing: Preprocessing | None = None
    """How media become tensors. Of the encode role only: no other role may preprocess on its accelerator."""
    parallelism: Parallelism | None = None
    """Devices of one instance. Default: one."""
    shared_memory_size: Quantity | None = None
    """Size of /dev/shm, bytes. Default: computed from what uses it (shown by `epd explain`). Pages count into the
    memory limit once touched. A change restarts the role."""
    args: list[Argument] | None = None
    """Extra vLLM flags, after engine.args. They may replace defaults but not the wiring between roles. A change
    restarts the role, or makes a new revision where vLLM compares the setting between roles."""
    env: Annotated[list[EnvVar], NoDuplicates, Field(json_schema_extra=MAP_BY_NAME)] | None = None
    """Extra environment variables, over engine.env. They may replace defaults but not the wiring between roles."""
    resources: Resources | None = None
    """CPU, memory and other resources of one instance. Devices are derived from parallelism. A change restarts it."""
    startup_timeout_seconds: Annotated[Seconds, Field(ge=10)] | None = None
    """How long an instance may take to pull, load and answer before it is restarted. Default 3600 seconds."""
    drain_timeout_seconds: Seconds | None = None
    """How long running requests may take to end when an instance stops (--shutdown-timeout). Default: 600 seconds for
    decode, 120 for the others. A change restarts the role."""
    template: PodTemplate | None = None
    """Overlay on the role's pods."""

    @model_validator(mode="after")
    def _replicas_or_scaling(self) -> "RoleSpec":
        if self.replicas is not None and self.scaling is not None:
            raise PydanticCustomError(
                "replicas_or_scaling",
                "replicas and scaling exclude each other: with scaling, an autoscaler owns the number",
            )
        return self
