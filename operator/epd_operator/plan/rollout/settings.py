"""The settings of a rollout, defaults filled in.

Within one revision, when only the template of a role changes, its Deployment follows them; between revisions the
planner does.
"""

from dataclasses import dataclass

from epd_operator.api.rollout import Rollout, RolloutStrategy
from epd_operator.engine.wiring import Wiring

DEFAULT_PROGRESS_DEADLINE_SECONDS = 3600
DEFAULT_HISTORY_LIMIT = 10


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """Settings of every role's Deployments. Counts or percentages of a role's replicas."""

    recreate: bool
    """All old pods go before a new one starts; surge and unavailable mean nothing then."""
    max_surge: int | str
    max_unavailable: int | str
    paused: bool
    history_limit: int
    progress_deadline_seconds: int
    """As asked for; a role's own is never below its startup timeout."""


def rollout_plan(wiring: Wiring) -> RolloutPlan:
    """Plan the rollout: no surge unless asked for, since a surge pod would wait for a device that an old pod holds."""
    written = wiring.deployment.spec.rollout or Rollout()
    twice = written.strategy is RolloutStrategy.BLUE_GREEN
    surge = written.max_surge if written.max_surge is not None else ("100%" if twice else 0)
    unavailable = written.max_unavailable
    if unavailable is None:
        unavailable = 0 if twice and not _is_zero(surge) else 1
    if _is_zero(surge) and _is_zero(unavailable):
        unavailable = 1  # Kubernetes refuses both, and nothing would ever move
    return RolloutPlan(
        recreate=written.strategy is RolloutStrategy.RECREATE,
        max_surge=surge,
        max_unavailable=unavailable,
        paused=bool(written.paused),
        history_limit=DEFAULT_HISTORY_LIMIT if written.history_limit is None else written.history_limit,
        progress_deadline_seconds=written.progress_deadline_seconds or DEFAULT_PROGRESS_DEADLINE_SECONDS,
    )


def _is_zero(amount: int | str) -> bool:
    return amount in (0, "0%")
