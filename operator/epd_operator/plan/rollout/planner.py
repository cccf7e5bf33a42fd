"""The next step of a rollout."""

from collections.abc import Mapping
from fractions import Fraction

from epd_operator.api.rollout import RolloutStrategy
from epd_operator.plan.rollout.blue_green import blue_green, takes_over
from epd_operator.plan.rollout.draft import Draft
from epd_operator.plan.rollout.hold import hold, spread
from epd_operator.plan.rollout.proportional import proportional
from epd_operator.plan.rollout.recreate import recreate
from epd_operator.plan.rollout.state import RolloutState
from epd_operator.plan.rollout.step import Phase, Step
from epd_operator.plan.rollout.view import View
from epd_operator.plan.rollout.words import change_words, waiting_words

_STRATEGIES = {
    RolloutStrategy.PROPORTIONAL: proportional,
    RolloutStrategy.RECREATE: recreate,
    RolloutStrategy.BLUE_GREEN: blue_green,
}


def next_step(state: RolloutState) -> Step:
    """What to do now about the revisions of a deployment. Pure; any state is legal, and nothing is remembered."""
    view = View(state)
    if not view.old or not any(state.desired.values()):
        draft = _scale(view)
    elif state.paused:
        draft = hold(view)
    else:
        draft = _STRATEGIES[state.strategy](view)
    requeue = _drain(draft)
    serving = _serving(draft)
    phase = _phase(draft, serving)
    words = change_words(draft, serving) if phase is Phase.MOVING else waiting_words(draft, phase)
    return Step(
        replicas=draft.replicas,
        serving=serving,
        deletable=tuple(name for name in state.revisions if name != state.target and name not in view.old),
        phase=phase,
        reason=words,
        requeue_seconds=requeue,
    )


def _scale(view: View) -> Draft:
    """Nothing is replaced, or nothing is to serve: the target is as desired at once, the rest goes."""
    draft = Draft(view)
    draft.given_up.update(view.old)
    draft.new.update(view.desired)
    return draft


def _drain(draft: Draft) -> int | None:
    """Lower the roles of given-up revisions whose time has come; the seconds until the next one's."""
    view = draft.view
    waits = []
    for name in draft.given_up:
        revision = view.revisions[name]
        idle = 0 if revision.serves else revision.idle_seconds
        # Where a role has none that answers, no request can pass any more; what runs in an instance ends there.
        passable = all(counts.passable for counts in revision.roles.values())
        for role in draft.replicas[name]:
            after = view.state.leave_after.get(role, 0) if passable else 0
            if idle is None or idle >= after:
                draft.replicas[name][role] = 0
            elif draft.replicas[name][role]:
                waits.append(after - idle)
    return min(waits, default=None)


def _serving(draft: Draft) -> dict[str, int]:
    """Revisions that may get new requests, with what each can carry in percent of all that can be carried."""
    view = draft.view
    target = view.revisions[view.target]
    able = [name for name in (*draft.kept, view.target) if view.complete(name, draft.passing(name))]
    # What has been ready for a moment only begins to serve where nothing else can, and never ceases to for that.
    names = [name for name in able if draft.share(name) > 0 or view.revisions[name].serves] or able
    if view.state.strategy is RolloutStrategy.BLUE_GREEN and not view.state.paused and len(names) > 1:
        if takes_over(view, draft.kept[-1]):
            names = [view.target]
        elif not target.serves:
            names.remove(view.target)
    if not names and not view.old and target.serves and any(view.desired.values()):
        names = [view.target]  # there is no other, and what it lacks the proxy says best
        return {view.target: 100}
    return _percent({name: view.share(name, draft.passing(name)) for name in names})


def _percent(shares: Mapping[str, Fraction]) -> dict[str, int]:
    """Shares as parts of 100; who carries something gets something."""
    parts = spread(100, {name: max(1, int(share * 10_000)) for name, share in shares.items()})
    for name, part in parts.items():
        if not part:
            parts[max(parts, key=lambda other: parts[other])] -= 1
            parts[name] = 1
    return parts


def _phase(draft: Draft, serving: dict[str, int]) -> Phase:
    view = draft.view
    changed = draft.changed or {name for name, revision in view.revisions.items() if revision.serves} != set(serving)
    if changed:
        return Phase.MOVING
    as_desired = all(view.role(view.target, role).is_just(desired) for role, desired in view.desired.items())
    if not view.old and as_desired:
        return Phase.FINISHED
    if view.old and view.state.paused:
        return Phase.PAUSED
    return Phase.STALLED if view.state.deadline_exceeded else Phase.WAITING
