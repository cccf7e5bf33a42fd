"""maxSurge and maxUnavailable: their defaults, and as counts of instances, rounded as Kubernetes' Deployment does it.

https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#rolling-update-deployment
"""

from dataclasses import dataclass

from epd_operator.api.rollout import Rollout, RolloutStrategy


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many instances of a role may be too many, and how many may be missing, while a change rolls out."""

    max_surge: int | str = 0
    """Count, or percentage of what is desired."""
    max_unavailable: int | str = 1

    @classmethod
    def of(cls, rollout: Rollout) -> "Bounds":
        """As written. No surge unless asked for: a surge pod would wait for a device that an old pod holds."""
        surge = rollout.max_surge
        if surge is None:
            surge = "100%" if rollout.strategy is RolloutStrategy.BLUE_GREEN else 0
        unavailable = rollout.max_unavailable
        if unavailable is None or (_is_zero(surge) and _is_zero(unavailable)):
            unavailable = 1 if _is_zero(surge) else 0  # Kubernetes refuses both, and nothing would ever move
        return cls(surge, unavailable)

    def surge(self, desired: int) -> int:
        """Instances of a role that may exist above `desired`; a percentage is rounded up."""
        return _count(self.max_surge, desired, round_up=True)

    def unavailable(self, desired: int) -> int:
        """Instances of a role that may be missing; a percentage is rounded down. 1 where surge and it come to 0."""
        count = _count(self.max_unavailable, desired, round_up=False)
        if count == 0 and self.surge(desired) == 0:
            return 1
        return min(count, desired) if desired else count


def _is_zero(amount: int | str) -> bool:
    return amount in (0, "0%")


def _count(amount: int | str, desired: int, *, round_up: bool) -> int:
    if isinstance(amount, int):
        return amount
    percent = int(amount.removesuffix("%"))
    return (desired * percent + (99 if round_up else 0)) // 100
