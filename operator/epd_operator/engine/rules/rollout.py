"""Rules about how a change reaches the instances."""

from collections.abc import Iterator

from epd_operator.api.finding import Severity
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring


@rule(
    id="rollout-without-progress",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="maxSurge and maxUnavailable are not both 0.",
    why="No new instance may start and no old one may go: a rollout would never end.",
    source="the API of EPDDeployment; Kubernetes refuses the same of a Deployment",
)
def rollout_without_progress(wiring: Wiring) -> Iterator[Broken]:
    """Nothing may go, and nothing may come: maxSurge is 0 unless it is written."""
    rollout = wiring.deployment.spec.rollout
    if rollout is None or rollout.max_unavailable not in (0, "0%") or rollout.max_surge not in (None, 0, "0%"):
        return
    also = "maxSurge is 0 too" if rollout.max_surge is not None else "maxSurge is 0 unless it is set"
    message = f"{also}, so no old instance may go and no new one may come"
    yield Broken("spec.rollout.maxUnavailable", rollout.max_unavailable, message, "set it or maxSurge to 1 or more")


RULES = (rollout_without_progress,)
