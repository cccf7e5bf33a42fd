"""How one revision replaces another over all roles: `next_step(state) -> Step`, a pure function.

The caller observes the cluster as a `RolloutState`, does what the `Step` says and asks again on every change; nothing
is remembered in between, so a crash at any point, a new target or a rollback needs no case of its own. A deployment
without old revisions is the simplest state: its step is to make what is desired.

For revision r and role k let d be the replicas desired, u and g the counts of maxUnavailable and maxSurge, and

    share(r)  = min over k of ready / d, and 0 where a role that is needed has nothing ready: what r can carry
    room(k)   = d + g - everything of role k that exists or is asked for, pods on their way out too
    keep(r,k) = ceil(d * (1 - share of all other revisions)) - u, at least 1 as long as r is not given up as a whole

then a step lowers each old revision to keep, smallest first, sick and starting pods leaving before ready ones (as
Kubernetes' ReplicaSet chooses), and raises the new one by room. Where that moves nothing more and all pods are ready,
keep is d - u - what the others have ready, role by role; and where that moves nothing either, no order of steps can
keep every bound (one replica and no surge), and the smallest old revision is given up: an outage, which ends when the
new revision is complete. See docs/rollouts.md.
"""

from epd_operator.plan.rollout.planner import next_step
from epd_operator.plan.rollout.settings import RolloutPlan, rollout_plan
from epd_operator.plan.rollout.state import RevisionState, RoleState, RolloutState
from epd_operator.plan.rollout.step import Phase, Step

__all__ = [
    "Phase",
    "RevisionState",
    "RoleState",
    "RolloutPlan",
    "RolloutState",
    "Step",
    "next_step",
    "rollout_plan",
]
