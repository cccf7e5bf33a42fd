"""The settings of a rollout, defaults filled in.

Within one revision, when only the template of a role changes, its Deployment follows them; between revisions the
planner does.
"""

from dataclasses import dataclass

from epd_operator.api.bounds import Bounds
from epd_operator.api.rollout import Rollout, RolloutStrategy
from epd_operator.engine.wiring import Wiring

DEFAULT_PROGRESS_DEADLINE_SECONDS = 3600
DEFAULT_HISTORY_LIMIT = 10


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """Settings of every role's Deployments and of the planner. Counts or percentages of a role's replicas."""

    strategy: RolloutStrategy
    """With Recreate, surge and unavailable mean nothing. BlueGreen is Proportional within one revision."""
    max_surge: int | str
    max_unavailable: int | str
    paused: bool
    history_limit: int
    progress_deadline_seconds: int
    """As asked for; a role's own is never below its startup timeout."""

    @property
    def recreate(self) -> bool:
        """All old pods go before a new one starts."""
        return self.strategy is RolloutStrategy.RECREATE


def rollout_plan(wiring: Wiring) -> RolloutPlan:
    """Plan the rollout: as written, or the defaults."""
    written = wiring.deployment.spec.rollout or Rollout()
    bounds = Bounds.of(written)
    return RolloutPlan(
        strategy=written.strategy or RolloutStrategy.PROPORTIONAL,
        max_surge=bounds.max_surge,
        max_unavailable=bounds.max_unavailable,
        paused=bool(written.paused),
        history_limit=DEFAULT_HISTORY_LIMIT if written.history_limit is None else written.history_limit,
        progress_deadline_seconds=written.progress_deadline_seconds or DEFAULT_PROGRESS_DEADLINE_SECONDS,
    )
