"""What the rollout planner answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from epd_operator.api.role import Role


class Phase(StrEnum):
    """Where a rollout stands."""

    FINISHED = "finished"
    """The target is as desired and nothing of any other revision is left."""
    MOVING = "moving"
    """The step changes replicas or what serves."""
    WAITING = "waiting"
    """For pods to get ready or to go, or for a drain."""
    PAUSED = "paused"
    STALLED = "stalled"
    """The progress deadline is over and nothing can be done but wait."""


@dataclass(frozen=True, slots=True)
class Step:
    """What to do now. Its parts may be done in any order or only in part: the next step follows from what is."""

    replicas: Mapping[str, Mapping[Role, int]]
    """spec.replicas of each role of each revision, the target's and every one that the state names."""
    serving: Mapping[str, int]
    """Revisions that may get new requests, and the percentage that each can take; they sum to 100. Empty: none can. A
    revision that is not named must not be routed to, even if it is complete (BlueGreen; a revision that drains)."""
    deletable: tuple[str, ...]
    """Old revisions of which nothing is left: their workloads and Services may be deleted."""
    phase: Phase
    reason: str
    """What happens or is waited for, as a sentence without full stop, for conditions and people."""
    requeue_seconds: int | None = None
    """Ask again after so long even if nothing changes: a drain will have got further."""
