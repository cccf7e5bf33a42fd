"""A rollout played through, in a cluster where every pod gets ready and goes before the next step."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from epd_operator.api.role import Role
from epd_operator.plan.plan import Plan
from epd_operator.plan.rollout.drain import leave_after
from epd_operator.plan.rollout.planner import next_step
from epd_operator.plan.rollout.state import RevisionState, RoleState, RolloutState
from epd_operator.plan.rollout.step import Phase, Step


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of a rollout and when it is done."""

    drained_seconds: int
    """Seconds that have passed in waits for the last requests of revisions that leave; starts are not counted."""
    step: Step


def start_of(old: Plan, new: Plan) -> RolloutState:
    """All of the old plan serves, and the new one is asked for."""
    roles = {plan.role: RoleState(plan.replicas, plan.replicas, desired=plan.replicas) for plan in old.roles}
    return RolloutState(
        target=new.revision,
        desired={plan.role: plan.replicas for plan in new.roles},
        revisions={old.revision: RevisionState(roles, serves=True)},
        strategy=new.rollout.strategy,
        max_surge=new.rollout.max_surge,
        max_unavailable=new.rollout.max_unavailable,
        paused=new.rollout.paused,
        leave_after=leave_after({plan.role: plan.drain.shutdown_timeout_seconds for plan in old.roles}),
    )


def simulate(state: RolloutState) -> Iterator[Stage]:
    """Each step until the rollout has finished, or is paused; the last stage is that."""
    elapsed = 0
    while True:
        step = next_step(state)
        waits = step.phase is not Phase.MOVING
        if not waits or step.phase in (Phase.FINISHED, Phase.PAUSED):
            yield Stage(elapsed, step)
        passed = step.requeue_seconds or 0 if waits else 0
        if waits and not passed:
            return
        elapsed += passed
        state = after(state, step, passed)


def after(state: RolloutState, step: Step, seconds: int) -> RolloutState:
    """The state once a step is done, its pods have come and gone, and some seconds have passed."""
    revisions = {}
    for name, replicas in step.replicas.items():
        if name in step.deletable:
            continue
        before = state.revisions.get(name, RevisionState({}))
        serves = name in step.serving
        idle = None if serves else 0 if before.serves else before.idle_seconds
        roles = {role: _settled(before, role, count) for role, count in replicas.items()}
        revisions[name] = RevisionState(roles, serves, idle if idle is None else idle + seconds)
    return replace(state, revisions=revisions)


def _settled(revision: RevisionState, role: Role, count: int) -> RoleState:
    desired = revision.roles[role].desired if role in revision.roles else None
    return RoleState(replicas=count, ready=count, desired=desired)
