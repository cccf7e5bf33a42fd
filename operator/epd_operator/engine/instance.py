"""One vLLM instance as the object asks for it: role in each transfer, device, parallelism, what the user added."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epd_operator.api.device import Device, DeviceType
from epd_operator.api.pod import EnvVar
from epd_operator.api.role import PreprocessingDevice, Role, RoleSpec, TensorIPC
from epd_operator.engine.flags import Argument, ArgumentProblem, ParsedArguments
from epd_operator.engine.secrets import is_secret

_TORCH_DEVICES = {DeviceType.CUDA: "cuda", DeviceType.ROCM: "cuda", DeviceType.XPU: "xpu", DeviceType.CPU: "cpu"}


@dataclass(frozen=True, slots=True)
class UserEnv:
    """A variable that the user wrote, and where."""

    path: str
    variable: EnvVar

    @property
    def shown(self) -> str:
        """NAME=value, or the name alone where the value comes from elsewhere or is likely to be a secret."""
        name, value = self.variable.name, self.variable.value
        return name if value is None or is_secret(name) else f"{name}={value}"


@dataclass(frozen=True, slots=True)
class Instance:
    """What one role's instances are told, before defaults are written out as flags."""

    role: Role
    spec: RoleSpec
    device: Device
    """Resolved: the role's own fields over spec.device; `type` is never None."""
    device_path: str
    """Where the device type was written: spec.<role>.device.type or spec.device.type."""
    ec_role: str | None
    """ec_producer, ec_consumer or None."""
    kv_role: str | None
    """kv_producer, kv_consumer or None."""
    args: ParsedArguments
    """engine.args, then the role's own, as one command line; a later flag wins."""
    arg_paths: tuple[str, ...]
    """Where each word of that command line was written: spec.engine.args[i] or spec.<role>.args[i]."""
    words: tuple[str, ...]
    """The words of that command line, as written."""
    env: Mapping[str, UserEnv]
    """By name; the role's own win over engine.env."""

    @property
    def device_type(self) -> DeviceType:
        """Kind of device."""
        return self.device.type or DeviceType.CUDA

    @property
    def torch_device(self) -> str:
        """The device as torch and vLLM's --mm-processor-device name it."""
        return _TORCH_DEVICES[self.device_type]

    @property
    def tensor(self) -> int:
        """Tensor parallelism."""
        return (self.spec.parallelism and self.spec.parallelism.tensor) or 1

    @property
    def pipeline(self) -> int:
        """Pipeline parallelism."""
        return (self.spec.parallelism and self.spec.parallelism.pipeline) or 1

    @property
    def data(self) -> int:
        """Data parallelism."""
        return (self.spec.parallelism and self.spec.parallelism.data) or 1

    @property
    def degrees(self) -> dict[str, int]:
        """Every kind of parallelism, by its name in `parallelism`."""
        return {"tensor": self.tensor, "pipeline": self.pipeline, "data": self.data}

    @property
    def devices(self) -> int:
        """Devices that one instance takes; 0 on CPU."""
        return 0 if self.device_type is DeviceType.CPU else self.tensor * self.pipeline * self.data

    @property
    def single_rank(self) -> bool:
        """Whether the instance is one process on one device."""
        return self.tensor == self.pipeline == self.data == 1

    @property
    def tensor_ipc(self) -> TensorIPC | None:
        """--mm-tensor-ipc of an encoder, the default resolved; None (vLLM's own default) for other roles."""
        preprocessing = self.spec.preprocessing
        if preprocessing is not None and preprocessing.tensor_ipc is not None:
            return preprocessing.tensor_ipc
        if self.role is not Role.ENCODE:
            return None
        return TensorIPC.TORCH_SHM if self.single_rank else TensorIPC.DIRECT_RPC

    @property
    def wanted_preprocessing(self) -> PreprocessingDevice:
        """preprocessing.device as written, Auto where nothing is."""
        preprocessing = self.spec.preprocessing
        return (preprocessing and preprocessing.device) or PreprocessingDevice.AUTO

    @property
    def preprocessing_device(self) -> str:
        """Where media become tensors in effect, as torch names it.

        `auto` picks the accelerator only for an ec_producer with torch_shm; `device` among the processor's own options
        wins (vLLM 0.33 config/vllm.py:2903, config/multimodal.py:558).
        """
        kwargs = self.user_value("--mm-processor-kwargs")
        named = kwargs.get("device") if isinstance(kwargs, dict) else None
        if isinstance(named, str) and named.lower() != "auto":
            return named.lower()
        if isinstance(named, int) and not isinstance(named, bool):
            return "cuda" if self.torch_device == "cpu" else self.torch_device  # a bare index is no CPU to torch
        if self.wanted_preprocessing is PreprocessingDevice.CPU or self.device_type is DeviceType.CPU:
            return "cpu"
        if self.wanted_preprocessing is PreprocessingDevice.ACCELERATOR:
            return self.torch_device
        if self.ec_role == "ec_producer" and self.tensor_ipc is TensorIPC.TORCH_SHM:
            return self.torch_device
        return "cpu"

    def user_value(self, name: str) -> Any:
        """What the user's args make of a flag, by its canonical name; None where they do not name it."""
        return self.args.values.get(name)

    def arg_path(self, argument: Argument | ArgumentProblem) -> str:
        """Where an argument was written."""
        return self.arg_paths[argument.index]

    def written(self, argument: Argument) -> str:
        """An argument as the user wrote it, its value in the same word or in the next ones."""
        word = self.words[argument.index]
        alone = argument.texts and "=" not in word and not word.endswith(argument.texts[0])
        return " ".join((word, *argument.texts)) if alone else word
