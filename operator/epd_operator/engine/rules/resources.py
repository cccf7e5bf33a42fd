"""Rules about the resources of an instance."""

import re
from collections.abc import Iterator, Mapping

from epd_operator.api.device import RESOURCE_NAME
from epd_operator.api.fields import path_of
from epd_operator.api.finding import Severity
from epd_operator.api.pod import Resources
from epd_operator.api.quantity import Quantity
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring


@rule(
    id="requests-above-limits",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="A request is not above the limit of the same resource.",
    why="The API server refuses the pods.",
    source="Kubernetes: resource management for pods and containers",
)
def requests_above_limits(wiring: Wiring) -> Iterator[Broken]:
    """Of the roles and of the proxy."""
    proxy = wiring.deployment.spec.proxy
    for role, instance in wiring.instances.items():
        yield from _above(f"spec.{role}.resources", instance.spec.resources)
    yield from _above("spec.proxy.resources", proxy.resources if proxy else None)


def _above(path: str, resources: Resources | None) -> Iterator[Broken]:
    limits = (resources and resources.limits) or {}
    for name, request in ((resources and resources.requests) or {}).items():
        limit = limits.get(name)
        if limit is not None and request.amount > limit.amount:
            message = f"is above the limit of {limit}, and the API server refuses such pods"
            remedy = f"lower it, or raise {path_of(('limits', name))}"
            yield Broken(f"{path}.{path_of(('requests', name))}", str(request), message, remedy)


@rule(
    id="resource-refused",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="Resources are those of a container, and extended ones are whole numbers with request and limit equal.",
    why="The API server refuses the pods.",
    source="Kubernetes: resource management for pods and containers; asked of 1.37",
)
def resource_refused(wiring: Wiring) -> Iterator[Broken]:
    """Of the roles and of the proxy; the device's own count is judged by its own rule."""
    proxy = wiring.deployment.spec.proxy
    for role, instance in wiring.instances.items():
        own = {instance.device.resource_name or "nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915"}
        yield from _refused(f"spec.{role}.resources", instance.spec.resources, own)
    yield from _refused("spec.proxy.resources", proxy.resources if proxy else None, set())


def _refused(path: str, resources: Resources | None, own: set[str]) -> Iterator[Broken]:
    limits, requests = (resources and resources.limits) or {}, (resources and resources.requests) or {}
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            if name not in own and (words := _wrong(name, amount, field, limits, requests)) is not None:
                yield Broken(f"{path}.{path_of((field, name))}", str(amount), *words)


def _wrong(
    name: str, amount: Quantity, field: str, limits: Mapping[str, Quantity], requests: Mapping[str, Quantity]
) -> tuple[str, str] | None:
    """Why the API server refuses an amount, and what to do; None if it does not."""
    if name in ("cpu", "memory", "ephemeral-storage"):
        return None
    if name.startswith("hugepages-"):
        if {"cpu", "memory"} & (limits.keys() | requests.keys()):
            return None
        return "huge pages go only with cpu or memory beside them", "add cpu or memory"
    if not re.fullmatch(RESOURCE_NAME, name):
        remedy = "use cpu, memory, ephemeral-storage, or an extended resource with its domain such as example.com/nic"
        return f"{name} is no resource of a container, and the API server refuses the pods", remedy
    if amount.amount.denominator != 1:
        return f"{name} is counted in whole numbers, and the API server refuses others", "write a whole number"
    if field == "requests" and (name not in limits or limits[name].amount != amount.amount):
        message = f"request and limit of {name} must be equal, and the API server refuses the pods"
        return message, f"set {path_of(('limits', name))} to {amount} too"
    return None


@rule(
    id="resource-claim-unknown",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="resources.claims name claims that the role's template brings.",
    why="The API server refuses the pods.",
    source="Kubernetes: dynamic resource allocation; asked of 1.37",
)
def claim_unknown(wiring: Wiring) -> Iterator[Broken]:
    """Of the roles."""
    for role, instance in wiring.instances.items():
        resources, template = instance.spec.resources, instance.spec.template
        brought = ((template and template.spec) or {}).get("resourceClaims")
        names = (
            [claim.get("name") for claim in brought or () if isinstance(claim, Mapping)]
            if isinstance(brought, list)
            else []
        )
        for index, claim in enumerate((resources and resources.claims) or ()):
            if claim.get("name") not in names:
                message = "names no claim of the pod, and the API server refuses the pods"
                remedy = f"add it to {role}.template.spec.resourceClaims, and write its name here"
                yield Broken(f"spec.{role}.resources.claims[{index}]", claim, message, remedy)


RULES = (requests_above_limits, resource_refused, claim_unknown)
