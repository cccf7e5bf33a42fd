"""The device that an engine runs on."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from epd_operator.api.base import APIModel, LabelValue, Name, Str

RESOURCE_NAME = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
"""An extended resource: always with its domain."""


class DeviceType(StrEnum):
    """Kinds of device that vLLM has a platform for and this operator knows."""

    CUDA = "CUDA"
    ROCM = "ROCm"
    XPU = "XPU"
    CPU = "CPU"


class Device(APIModel):
    """A device, and how the cluster names it."""

    type: DeviceType | None = None
    """CUDA, ROCm, XPU or CPU. Default CUDA. A change makes a new revision (another image)."""
    resource_name: Annotated[Str, Field(max_length=317, pattern=RESOURCE_NAME)] | None = None
    """Extended resource that stands for one device. Default nvidia.com/gpu, amd.com/gpu or gpu.intel.com/i915 by type;
    none for CPU. A change restarts the role."""
    product: Annotated[LabelValue, Field(min_length=1)] | None = None
    """Product that the nodes must report, as in the node label nvidia.com/gpu.product (or amd.com/gpu.product-name,
    gpu.intel.com/product). Default: any. A change restarts the role."""
    runtime_class_name: Name | None = None
    """RuntimeClass of the pods. Default: the cluster's. A change restarts the role."""
