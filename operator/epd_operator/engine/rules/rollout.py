"""Rules about how a change reaches the instances."""

from collections.abc import Iterator

from epd_operator.api.bounds import Bounds
from epd_operator.api.finding import Severity
from epd_operator.api.rollout import RolloutStrategy
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


@rule(
    id="rollout-outage",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="With rollout settings written, no role may lose all its instances in a rollout.",
    why="The old instance goes before the new one is ready, so requests fail in between.",
    source="docs/rollouts.md; Kubernetes' Deployment does the same for a change within one revision",
)
def rollout_outage(wiring: Wiring) -> Iterator[Broken]:
    """As many as there are may be missing.

    Silent where the user chose nothing (one of each is how one begins), and for Recreate, which says so itself.
    """
    rollout = wiring.deployment.spec.rollout
    if rollout is None or rollout.strategy is RolloutStrategy.RECREATE:
        return
    if rollout.strategy is None and rollout.max_surge is None and rollout.max_unavailable is None:
        return
    if rollout.max_unavailable in (0, "0%"):
        return  # nothing may be missing; whether it can move is another rule's matter
    bounds = Bounds.of(rollout)
    for role, instance in wiring.instances.items():
        replicas = 1 if instance.spec.replicas is None else instance.spec.replicas
        if instance.spec.scaling is not None or not 0 < replicas <= bounds.unavailable(replicas):
            continue
        if replicas == 1:
            message = "a rollout takes the only instance away before the new one is ready, so requests fail meanwhile"
            remedy = "set it to 2, or spec.rollout.maxSurge to 1 and maxUnavailable to 0 if a device is free for it"
            yield Broken(f"spec.{role}.replicas", replicas, message, remedy)
        else:
            message = f"lets a rollout take all {replicas} instances of {role} away at once, so requests fail meanwhile"
            remedy = f"set it below {replicas}, or strategy to Recreate if that is meant"
            yield Broken("spec.rollout.maxUnavailable", rollout.max_unavailable, message, remedy)


@rule(
    id="rollout-setting-ignored",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="maxSurge and maxUnavailable go with Proportional and BlueGreen.",
    why="Recreate takes all of the old instances away before new ones start, whatever they say.",
    source="docs/rollouts.md",
)
def rollout_setting_ignored(wiring: Wiring) -> Iterator[Broken]:
    """One of them beside Recreate."""
    rollout = wiring.deployment.spec.rollout
    if rollout is None or rollout.strategy is not RolloutStrategy.RECREATE:
        return
    for name, value in (("maxSurge", rollout.max_surge), ("maxUnavailable", rollout.max_unavailable)):
        if value is not None:
            message = "Recreate takes all of the old away before the new starts, whatever this says"
            yield Broken(f"spec.rollout.{name}", value, message, "remove it, or set strategy to Proportional")


RULES = (rollout_without_progress, rollout_outage, rollout_setting_ignored)
