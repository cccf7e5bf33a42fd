"""Rules about the resources of an instance."""

from collections.abc import Iterator

from epd_operator.api.fields import path_of
from epd_operator.api.finding import Severity
from epd_operator.api.pod import Resources
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


RULES = (requests_above_limits,)
