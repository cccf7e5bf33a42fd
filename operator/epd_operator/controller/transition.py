"""The planner's view of an object, and its answer: how far the change from one revision to the next is. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from epd_operator.api.bounds import Bounds
from epd_operator.api.conditions import Reason
from epd_operator.api.role import Role
from epd_operator.api.rollout import Rollout, RolloutStrategy
from epd_operator.controller.observed import Observed
from epd_operator.controller.pods import Pod
from epd_operator.controller.revisions import Revision
from epd_operator.controller.traffic import NEVER, Traffic
from epd_operator.plan.rollout import RevisionState, RoleState, RolloutState, Step, next_step
from epd_operator.plan.rollout.drain import leave_after

SICK = frozenset(
    {
        Reason.UNSCHEDULABLE,
        Reason.IMAGE_PULL_FAILED,
        Reason.CONTAINER_CONFIG_ERROR,
        Reason.OUT_OF_MEMORY,
        Reason.CRASH_LOOPING,
    }
)
"""Why pods do not get ready by waiting."""


@dataclass(frozen=True)
class Transition:
    """Where the change of revisions is, and what comes next."""

    state: RolloutState
    step: Step
    late: str
    """Which part of the target has made no progress within its deadline; empty where all has."""
    lead: str
    """The revision whose rendering decides about what all revisions share: proxy, policies."""
    traffic: Mapping[str, Traffic]
    """What the Services of each revision shall say."""
    look_seconds: float | None
    """When time alone may have changed something."""

    @property
    def rolling(self) -> bool:
        """Something of another revision than the target is left."""
        return any(name != self.state.target for name in self.state.revisions)


def transition(
    seen: Observed, revisions: Mapping[str, Revision], desired: Mapping[Role, int], rollout: Mapping[str, Any]
) -> Transition:
    """Ask the planner. `revisions`: the target first. `rollout`: spec.rollout, of a spec that was accepted."""
    target, *old = revisions.values()
    late, patience = _late(seen, target)
    state = _state(seen, revisions, desired, Rollout.model_validate(rollout), late=bool(late))
    step = next_step(state)
    waits = [float(step.requeue_seconds)] if step.requeue_seconds is not None else []
    waits += [patience] if patience is not None else []
    waits += [-seen.seconds_since(pod.ends) + 1 for pod in seen.pods if old and _leaves(seen, pod)]
    traffic = {
        name: (revision.traffic if state.revisions[name].served else NEVER).then(
            # Nothing to serve with is no reason to write: what is alone serves again once it has instances.
            serves=name in step.serving or (revision is target and revision.traffic.open and not any(desired.values())),
            now=seen.now,
        )
        for name, revision in revisions.items()
    }
    return Transition(state, step, late, _lead(target, old, state, step), traffic, min(waits, default=None))


def _state(
    seen: Observed, revisions: Mapping[str, Revision], desired: Mapping[Role, int], rollout: Rollout, *, late: bool
) -> RolloutState:
    target, *old = revisions.values()
    bounds = Bounds.of(rollout)
    longest: dict[Role, int] = {}
    for revision in old:
        for role in revision.roles:
            longest[role] = max(longest.get(role, 0), revision.drain_seconds(role))
    return RolloutState(
        target=target.name,
        desired=desired,
        revisions={target.name: _revision_state(seen, target)}
        | {each.name: _revision_state(seen, each, old=True) for each in old},
        strategy=rollout.strategy or RolloutStrategy.PROPORTIONAL,
        max_surge=bounds.max_surge,
        max_unavailable=bounds.max_unavailable,
        paused=rollout.paused is True,
        deadline_exceeded=late,
        leave_after=leave_after(longest),
    )


def _revision_state(seen: Observed, revision: Revision, *, old: bool = False) -> RevisionState:
    pods: dict[str, list[Pod]] = {}
    for pod in seen.pods:
        if pod.revision == revision.name and not pod.over:
            pods.setdefault(pod.component, []).append(pod)
    traffic = revision.traffic
    idle = max(0, int(seen.seconds_since(traffic.ended))) if traffic.ended else None
    roles = {role: _role_state(seen, revision, role, pods.get(role, [])) for role in revision.roles}
    # One that was alone is open from its first day, whether or not it ever had what it takes to serve.
    serves = traffic.open and (
        not old
        or revision.name == seen.status.get("currentRevision")
        or all(counts.passing for counts in roles.values() if counts.replicas)
    )
    return RevisionState(roles, serves, idle)


def _role_state(seen: Observed, revision: Revision, role: Role, pods: Iterable[Pod]) -> RoleState:
    """Counts from the Deployment's status and from the pods: whichever is ahead, no device counts as free too early."""
    child = revision.workloads.get(role)
    workload = child.workload if child is not None else None
    staying = [pod for pod in pods if not pod.deleting]
    sick = sum(pod.trouble is not None and pod.trouble.reason in SICK for pod in staying)
    terminating = sum(_leaves(seen, pod) for pod in pods)
    if workload is None:
        return RoleState(pods=len(staying), sick=sick, terminating=terminating)
    total = max(workload.total, len(staying))
    refused = max(0, workload.wanted - total) if workload.failure else 0
    ready = workload.available
    return RoleState(
        replicas=workload.wanted,
        ready=ready,
        sick=min(sick + refused, max(0, max(workload.wanted, total) - ready)),
        pods=total,
        terminating=terminating,
        answering=workload.ready,
        desired=workload.desired,
    )


def _leaves(seen: Observed, pod: Pod) -> bool:
    """Whether a pod is on its way out, and within its grace period: later its node is lost, and its device with it."""
    return pod.deleting and not pod.over and (not pod.ends or seen.seconds_since(pod.ends) <= 0)


def _late(seen: Observed, target: Revision) -> tuple[str, float | None]:
    """What of the target is late, in words, else after how many seconds something may be.

    A Deployment watches its progress only until it was complete once; then its pods' own times tell.
    """
    patience = []
    for pod in sorted(seen.pods, key=lambda pod: pod.name):
        if pod.revision != target.name or pod.trouble is None or pod.over or not pod.since:
            continue
        deadline = target.progress_deadline_seconds(Role(pod.component))
        left = deadline - seen.seconds_since(pod.since)
        if left <= 0:
            return f"pod {pod.name} is not ready after {deadline} s", None
        patience.append(left)
    for child in target.workloads.values():
        if child.workload is not None and child.workload.stuck:
            return f"{child.resource} {child.name}: {child.workload.stuck}", None
    return "", min(patience, default=None)


def _lead(target: Revision, old: Iterable[Revision], state: RolloutState, step: Step) -> str:
    """The target from the moment in which it serves; until then the old revision, as long as there is one."""
    if state.revisions[target.name].served or target.name in step.serving:
        return target.name
    served = [
        revision
        for revision in old
        if state.revisions[revision.name].served and any(step.replicas[revision.name].values())
    ]
    found = max(served, key=lambda each: (each.name in step.serving, each.number), default=target)
    return found.name
