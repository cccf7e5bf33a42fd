"""Rules about a device among the processor's own options, which wins over every other setting."""

import re
from collections.abc import Iterator
from typing import Any

from epd_operator.api.finding import Severity
from epd_operator.api.role import PreprocessingDevice, Role
from epd_operator.engine.instance import Instance
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

FLAG = "--mm-processor-kwargs"
TORCH_DEVICE = re.compile(
    r"(cpu|cuda|ipu|xpu|mkldnn|opengl|opencl|ideep|hip|ve|fpga|maia|xla|lazy|vulkan|mps|meta|hpu|mtia|privateuseone)"
    r"(:(0|[1-9][0-9]*))?"
)
"""What `torch.device` takes, in lower case only (torch 2.13)."""
SOURCE = "vLLM 0.28 config/multimodal.py:351, 0.33 config/multimodal.py:558 to 670"


def _devices(wiring: Wiring) -> Iterator[tuple[str, str, Any, Instance]]:
    """Where a device is named in the options: path, as written, the device, the instance."""
    if not wiring.takes_media:
        return  # vLLM does not look at the options of a model without media
    for instance in wiring.instances.values():
        options = instance.user_value(FLAG)
        given = instance.args.last(FLAG)
        if given is not None and isinstance(options, dict) and options.get("device") is not None:
            yield instance.arg_path(given), instance.written(given), options["device"], instance


def _kind_of(device: Any) -> str | None:
    """The type of a torch device; a bare index is one of the accelerator; None where torch takes it for none."""
    if isinstance(device, int) and not isinstance(device, bool):
        return "cuda" if device >= 0 else None
    found = TORCH_DEVICE.fullmatch(device) if isinstance(device, str) else None
    return found[1] if found else None


@rule(
    id="processor-device-invalid",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="A device in --mm-processor-kwargs is one that torch knows, in lower case.",
    why="vLLM refuses to start.",
    source=SOURCE,
    proved=True,
)
def device_invalid(wiring: Wiring) -> Iterator[Broken]:
    """A device that `torch.device` does not take."""
    for path, written, device, instance in _devices(wiring):
        if _kind_of(device) is None:
            message = f"{device!r} is no torch device (vLLM refuses to start)"
            remedy = f"write cpu or {instance.torch_device}, or set encode.preprocessing.device instead"
            yield Broken(path, written, message, remedy)


@rule(
    id="processor-device-off-encoder",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="--mm-processor-kwargs names the accelerator only on an encoder.",
    why="vLLM refuses to start: the processor would share the device with the language model.",
    source=SOURCE,
    proved=True,
)
def device_off_encoder(wiring: Wiring) -> Iterator[Broken]:
    """The accelerator, named on an instance that also runs the language model."""
    for path, written, device, instance in _devices(wiring):
        kind = _kind_of(device)
        if instance.ec_role != "ec_producer" and kind == instance.torch_device and kind != "cpu":
            message = f"{instance.role} instances also run the language model on it (vLLM refuses to start)"
            yield Broken(path, written, message, "remove device, or set encode.preprocessing.device instead")


@rule(
    id="processor-device-clash",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="A device in --mm-processor-kwargs says the same as preprocessing.device, and names a device that is there.",
    why="The option wins without a word; an index beyond the instance's devices ends each request with an error.",
    source=SOURCE,
    proved=True,
)
def device_clash(wiring: Wiring) -> Iterator[Broken]:
    """The options name another device than the encoder's spec, or one that the pod does not have."""
    for path, written, device, instance in _devices(wiring):
        kind = _kind_of(device)
        if kind is None:
            continue
        wanted = instance.wanted_preprocessing if instance.role is Role.ENCODE else PreprocessingDevice.AUTO
        asked = {PreprocessingDevice.CPU: "cpu", PreprocessingDevice.ACCELERATOR: instance.torch_device}.get(wanted)
        if asked is not None and asked != kind:
            message = f"it wins over encode.preprocessing.device, which says {wanted}, without a word"
            yield Broken(path, written, message, "remove device from it, or change encode.preprocessing.device")
        elif not _is_there(kind, device, instance):
            devices = f"{instance.devices} of {instance.torch_device}" if instance.devices else "none"
            message = f"{device} is not there ({instance.role} has {devices}), and only the first request shows it"
            yield Broken(path, written, message, "remove device, or set encode.preprocessing.device instead")


def _is_there(kind: str, device: Any, instance: Instance) -> bool:
    """Whether the pod has the device; that other roles may not use the accelerator is another rule's."""
    index = device if isinstance(device, int) else int(str(device).partition(":")[2] or 0)
    if kind == "cpu":
        return True
    return kind == instance.torch_device and (index < max(1, instance.devices) or instance.role is not Role.ENCODE)


RULES = (device_invalid, device_off_encoder, device_clash)
