"""The plan of one role's instances."""

from collections.abc import Mapping
from typing import Any

from epd_operator.api import names
from epd_operator.api.device import Device, DeviceType
from epd_operator.api.pod import Resources
from epd_operator.api.role import Role
from epd_operator.engine.command import Command, command
from epd_operator.engine.drain import ROUTING, drain_of
from epd_operator.engine.environment import DEFAULT_STARTUP_SECONDS
from epd_operator.engine.images import default_image
from epd_operator.engine.instance import Instance
from epd_operator.engine.memory import shared_memory_bytes, shared_memory_uses
from epd_operator.engine.ports import fixed_ports
from epd_operator.engine.release import Release
from epd_operator.engine.site import POD, Site
from epd_operator.engine.wiring import Wiring
from epd_operator.plan.plan import Port, RolePlan
from epd_operator.plan.revision import digest
from epd_operator.plan.rollout import rollout_plan
from epd_operator.plan.storage import mounts_of, shared_directories

DEVICE_RESOURCES = {
    DeviceType.CUDA: "nvidia.com/gpu",
    DeviceType.ROCM: "amd.com/gpu",
    DeviceType.XPU: "gpu.intel.com/i915",
}
"""Extended resources of the vendors' device plugins."""
PRODUCT_LABELS = {
    DeviceType.CUDA: "nvidia.com/gpu.product",
    DeviceType.ROCM: "amd.com/gpu.product-name",
    DeviceType.XPU: "gpu.intel.com/product",
}
"""Node labels in which the vendors' feature discovery writes the product."""
MANAGER = "epd-operator"
_NOT_IN_PODS = ("shared_memory_uses", "service_labels")
"""Parts of a role's plan that no pod shows: words, and labels of the Service."""


def image_of(wiring: Wiring, role: Role) -> str:
    """Image of a role's engine: as written, else vLLM's published one for release and device."""
    written = wiring.deployment.spec.engine.image
    if written is not None:
        return written
    release = wiring.release or Release(0, 0)
    return default_image(release, wiring.instances[role].device_type) or ""


def role_plan(wiring: Wiring, role: Role, revision: str, replicas: int) -> RolePlan:
    """Plan one role of one revision."""
    instance = wiring.instances[role]
    name = wiring.deployment.name
    engine = wiring.deployment.spec.engine
    selector = selector_of(name, role, revision)
    claims = instance.spec.resources.claims if instance.spec.resources else None
    resource = None if claims else device_resource(instance.device)
    fields: dict[str, Any] = {
        "image": image_of(wiring, role),
        "image_pull_policy": engine.image_pull_policy,
        "image_pull_secrets": tuple(secret.name for secret in engine.image_pull_secrets or ()),
        "command": command(wiring, role, pod_site(name, revision)),
        "ports": ports_of(wiring, instance),
        "device": instance.device,
        "device_count": instance.devices if resource else 0,
        "device_resource": resource,
        "node_labels": node_labels(instance.device),
        "resources": instance.spec.resources or Resources(),
        "shared_memory_bytes": shared_memory_bytes(wiring, instance),
        "shared_memory_uses": shared_memory_uses(wiring, instance),
        "mounts": mounts_of(wiring, instance),
        "startup_seconds": instance.spec.startup_timeout_seconds or DEFAULT_STARTUP_SECONDS,
        "drain": drain_of(wiring, role),
        "preprocessing_device": instance.preprocessing_device,
        "overlay": instance.spec.template,
        "selector": selector,
        "labels": selector | {names.LABEL_NAME: "epd", names.LABEL_MANAGED_BY: MANAGER},
        "service_labels": selector | service_labels(wiring, role),
    }
    progress = rollout_plan(wiring).progress_deadline_seconds
    return RolePlan(
        role=role,
        directories=shared_directories(wiring, instance, pod_site(name, revision)),
        progress_deadline_seconds=max(progress, fields["startup_seconds"] + ROUTING),
        name=names.role_name(name, role, revision),
        replicas=replicas,
        external_scaling=instance.spec.scaling is not None,
        template_hash=digest({key: _hashed(value) for key, value in fields.items() if key not in _NOT_IN_PODS})[:16],
        **fields,
    )


def pod_site(name: str, revision: str) -> Site:
    """Pods of different revisions never share a directory: files are found by content, not by model."""
    return Site(
        embeddings_directory=f"{POD.embeddings_directory}/{name}/{revision}",
        kv_directory=f"{POD.kv_directory}/{name}/{revision}",
    )


def selector_of(name: str, component: str, revision: str | None = None) -> dict[str, str]:
    """What selects the pods of a role of a revision; never user labels or versions, since it cannot change."""
    selector = {names.LABEL_INSTANCE: name, names.LABEL_COMPONENT: str(component)}
    return selector | ({names.LABEL_REVISION: revision} if revision else {})


def service_labels(wiring: Wiring, role: Role) -> dict[str, str]:
    """What the proxy learns from EndpointSlices: role, engine release, connectors, and how many ranks there are."""
    labels = {
        names.LABEL_NAME: "epd",
        names.LABEL_MANAGED_BY: MANAGER,
        names.LABEL_ROLE: str(role),
        names.LABEL_ENGINE_VERSION: str(wiring.release),
    }
    if wiring.embeddings is not None:
        labels[names.LABEL_EMBEDDINGS_CONNECTOR] = wiring.embeddings.connector
    if wiring.kv is not None:
        labels[names.LABEL_KV_CONNECTOR] = wiring.kv.connector
    instance = wiring.instances[role]
    for label, degree in (
        (names.LABEL_DATA_PARALLEL, instance.data),
        (names.LABEL_TENSOR_PARALLEL, instance.tensor),
    ):
        if degree > 1:
            labels[label] = str(degree)
    return labels


def device_resource(device: Device) -> str | None:
    """The extended resource of a device; None on CPU."""
    return None if device.type is DeviceType.CPU else device.resource_name or DEVICE_RESOURCES.get(_type(device))


def node_labels(device: Device) -> Mapping[str, str]:
    """The node labels that a device's product asks for."""
    label = PRODUCT_LABELS.get(_type(device))
    return {label: device.product} if device.product is not None and label is not None else {}


def ports_of(wiring: Wiring, instance: Instance) -> tuple[Port, ...]:
    """Every fixed port of the instance's pod."""
    return tuple(Port(name, number) for name, number in fixed_ports(wiring, instance).items())


def _type(device: Device) -> DeviceType:
    return device.type or DeviceType.CUDA


def _hashed(value: Any) -> Any:
    """A field of the plan as JSON for its hash; reasons are words, not content."""
    if isinstance(value, Command):
        return [value.argv, [(variable.name, variable.value, variable.source) for variable in value.env]]
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if isinstance(value, tuple):
        return [_hashed(item) for item in value]
    return {"repr": repr(value)} if hasattr(value, "__dataclass_fields__") else value
