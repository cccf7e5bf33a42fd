"""Rules about devices."""

import math
from collections.abc import Iterator

from epd_operator.api.device import DeviceType
from epd_operator.api.finding import Severity
from epd_operator.api.role import Role
from epd_operator.engine import connectors
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

MAX_DEVICES = 128
"""Above what one node has (16 devices, or 112 slices of them), and so few that the ports of its ranks are free."""


@rule(
    id="encoder-device-memory",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="Encoder and consumer differ in device type only where embeddings go through host memory or files.",
    why="ECMooncakeConnector moves device memory by default.",
    source="vLLM 0.33 config/ec_transfer.py (ec_buffer_device)",
)
def encoder_device_memory(wiring: Wiring) -> Iterator[Broken]:
    """Two types of device and a connector of device memory."""
    encode, consumer = wiring.instances.get(Role.ENCODE), wiring.instances.get(wiring.consumer)
    if encode is None or consumer is None or wiring.embeddings is None:
        return
    needs = connectors.embeddings_needs(wiring.embeddings.connector)
    if needs.device_memory and encode.device_type is not consumer.device_type:
        message = (
            f"{wiring.embeddings.connector} moves device memory, and {consumer.role} runs on {consumer.device_type}"
        )
        remedy = "give both roles the same device type, or use ECCPUConnector or ECExampleConnector"
        yield Broken(encode.device_path, encode.device_type, message, remedy)


@rule(
    id="device-on-cpu",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="A CPU device has no resource name and no product.",
    why="The setting would do nothing.",
    source="the API of EPDDeployment",
)
def device_on_cpu(wiring: Wiring) -> Iterator[Broken]:
    """Fields of an accelerator beside type CPU."""
    spec = wiring.deployment.spec
    places = {"spec.device": spec.device} | {
        f"spec.{role}.device": instance.spec.device for role, instance in wiring.instances.items()
    }
    for path, device in places.items():
        if device is None or device.type is not DeviceType.CPU:
            continue
        for name, value in (("resourceName", device.resource_name), ("product", device.product)):
            if value is not None:
                message = "names an accelerator, and type is CPU"
                yield Broken(f"{path}.{name}", value, message, "remove it, or change type")


@rule(
    id="device-resource-twice",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="The device's resource is derived from parallelism and not written into resources, unless it says the same.",
    why="vLLM needs exactly tensor x pipeline x data devices; more stay idle, fewer keep it from starting.",
    source="vLLM 0.33 config/parallel.py (world size)",
)
def device_resource_twice(wiring: Wiring) -> Iterator[Broken]:
    """A count of the device's resource that is not the derived one."""
    for role, instance in wiring.instances.items():
        resources = instance.spec.resources
        if resources is None or instance.device_type is DeviceType.CPU:
            continue
        names = {instance.device.resource_name, "nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"} - {None}
        told: set[tuple[str, str]] = set()
        for field, amounts in (("limits", resources.limits), ("requests", resources.requests)):
            for name, amount in (amounts or {}).items():
                if name in names and amount.amount != instance.devices:
                    if (name, amount) in told:
                        continue
                    told.add((name, amount))
                    product = " x ".join(str(degree) for degree in instance.degrees.values())
                    takes = f"{instance.devices} device{'s' if instance.devices > 1 else ''}"
                    message = f"tensor x pipeline x data parallelism is {product}, so an instance takes {takes}"
                    path = f"spec.{role}.resources.{field}[{name}]"
                    yield Broken(path, str(amount), message, "remove it, or change parallelism")


@rule(
    id="instance-in-one-pod",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what=f"An instance takes at most {MAX_DEVICES} devices.",
    why="All of its ranks run in one pod, so on one node; no node has more, and the pod would wait for ever.",
    source="the plan: one pod an instance",
)
def instance_in_one_pod(wiring: Wiring) -> Iterator[Broken]:
    """Tensor x pipeline x data parallelism is more than any node has."""
    for role, instance in wiring.instances.items():
        ranks = math.prod(instance.degrees.values())
        if ranks > MAX_DEVICES:
            largest = max(instance.degrees, key=lambda name: instance.degrees[name])
            message = f"tensor x pipeline x data is {ranks} ranks in one pod, and no node has so many devices"
            path = f"spec.{role}.parallelism.{largest}"
            yield Broken(path, instance.degrees[largest], message, "lower it, and raise replicas instead")


RULES = (encoder_device_memory, device_on_cpu, device_resource_twice, instance_in_one_pod)
