"""BlueGreen: the new revision is complete before traffic moves, all at once; it takes the devices twice."""

from epd_operator.api.role import Role
from epd_operator.plan.rollout.draft import Draft
from epd_operator.plan.rollout.view import View


def blue_green(view: View) -> Draft:
    """One step: raise the target to what is desired; until traffic has moved, so does the base."""
    draft = Draft(view)
    draft.given_up.update(name for name in view.old if view.hopeless(name) or view.unborn(name))
    if draft.kept and view.answers(draft.kept[-1]):  # until it does, another may be all that serves
        draft.given_up.update(draft.kept[:-1])
    if takes_over(view, draft.kept[-1] if draft.kept else None):
        draft.given_up.update(view.old)
    for role, desired in view.desired.items():
        draft.new[role] = min(desired, draft.new[role] + draft.room(role, _limit(view, role)))
    for base in draft.kept:
        if not view.same_roles(base) or not view.complete(base):
            continue
        for role, desired in view.desired.items():
            replicas = draft.replicas[base][role]
            missing = min(max(0, desired - replicas), draft.room(role, _limit(view, role)))
            draft.replicas[base][role] = min(replicas + missing, desired)
    return draft


def full(view: View) -> bool:
    """Whether the target has every instance ready."""
    return view.complete(view.target) and all(
        view.role(view.target, role).ready >= desired for role, desired in view.desired.items()
    )


def takes_over(view: View, base: str | None) -> bool:
    """Whether the target alone serves: it is all there, or it was and the base has been closed since."""
    if full(view) or base is None:
        return full(view)
    return view.revisions[view.target].serves and view.complete(view.target) and not view.revisions[base].serves


def _limit(view: View, role: Role) -> int:
    """Both sets in full."""
    others = [view.whole(name, role) for name in view.old if not view.same_roles(name) and role in view.roles(name)]
    return view.desired[role] + max([view.desired[role], *others])
