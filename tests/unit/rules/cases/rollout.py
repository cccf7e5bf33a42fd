"""Cases of the rules about rollouts."""

from tests.unit.rules.case import Breaks, Case, Spares

CASES = (
    Case(
        "rollout-without-progress",
        (
            Breaks("rollout: {maxSurge: 0, maxUnavailable: 0}", "spec.rollout.maxUnavailable", 0),
            Breaks("rollout: {maxUnavailable: 0%}", "spec.rollout.maxUnavailable", "0%"),
        ),
        (
            Spares("rollout: {maxSurge: 1, maxUnavailable: 0}"),
            Spares("{rollout: {maxSurge: 0}, encode: {replicas: 2}, decode: {replicas: 2}}"),
        ),
    ),
    Case(
        "rollout-outage",
        (
            Breaks("{rollout: {maxSurge: 0}, encode: {replicas: 2}}", "spec.decode.replicas", 1, remedy="2"),
            Breaks(
                "{rollout: {strategy: Proportional}, encode: {replicas: 1}, decode: {replicas: 2}}",
                "spec.encode.replicas",
                1,
                remedy="maxSurge",
            ),
            Breaks(
                "{rollout: {maxUnavailable: 100%}, encode: {replicas: 101}, decode: {replicas: 3, scaling: null}}",
                "spec.rollout.maxUnavailable",
                "100%",
            ),
        ),
        (
            Spares("rollout: {}"),
            Spares("rollout: {paused: true, historyLimit: 3}"),
            Spares("rollout: {strategy: Recreate}"),
            Spares("rollout: {strategy: BlueGreen}"),
            Spares("rollout: {maxSurge: 1}"),
            Spares("rollout: {maxSurge: 25%}"),
            Spares("{rollout: {maxUnavailable: 2}, encode: {replicas: 3}, decode: {replicas: 3}}"),
            Spares("{rollout: {maxUnavailable: 1}, encode: {replicas: 2}, decode: {scaling: {mode: External}}}"),
        ),
    ),
    Case(
        "rollout-setting-ignored",
        (
            Breaks("rollout: {strategy: Recreate, maxSurge: 1}", "spec.rollout.maxSurge", 1, remedy="Proportional"),
            Breaks("rollout: {strategy: Recreate, maxUnavailable: 25%}", "spec.rollout.maxUnavailable", "25%"),
        ),
        (Spares("rollout: {strategy: Recreate, paused: true}"), Spares("rollout: {strategy: BlueGreen, maxSurge: 1}")),
    ),
)
