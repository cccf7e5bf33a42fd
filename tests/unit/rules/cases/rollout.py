"""Cases of the rules about rollouts."""

from tests.unit.rules.case import Breaks, Case, Spares

CASES = (
    Case(
        "rollout-without-progress",
        (
            Breaks("rollout: {maxSurge: 0, maxUnavailable: 0}", "spec.rollout.maxUnavailable", 0),
            Breaks("rollout: {maxUnavailable: 0%}", "spec.rollout.maxUnavailable", "0%"),
        ),
        (Spares("rollout: {maxSurge: 1, maxUnavailable: 0}"), Spares("rollout: {maxSurge: 0}")),
    ),
)
