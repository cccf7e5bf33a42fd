"""Proportional: old and new shift step by step in every role, so that together they always carry the load."""

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import ceil

from epd_operator.api.role import Role
from epd_operator.plan.rollout.draft import Draft
from epd_operator.plan.rollout.view import View

Keep = Callable[[Draft, str, Role], int]
"""Instances of a role that a revision must keep, given the rest of the draft; may be negative."""


def proportional(view: View) -> Draft:
    """One step: give up what carries nothing, lower the old, raise the new; where nothing moves, be less choosy."""
    draft = Draft(view)
    give_up_useless(draft)
    lower(draft, draft.kept, keep_by_share)
    if len(draft.kept) > 1 and not view.complete(view.target) and not completable(draft):
        draft = gather(view)
    else:
        grow(draft)
    if draft.kept and not draft.given_up and not draft.changed and settled(view):
        lower(draft, draft.kept, keep_by_role)
        if not draft.given_up and not draft.changed:
            draft.given_up.add(draft.kept[0])
    return draft


def give_up_useless(draft: Draft) -> None:
    """Give up old revisions that lack a role for good or never served, and of others than the base all that do not."""
    view = draft.view
    draft.given_up.update(name for name in view.old if view.hopeless(name) or view.unborn(name))
    *others, base = draft.kept or [""]
    for name in others:
        begins = not view.revisions[name].served and view.complete(base)
        if begins or not view.answers(name):
            draft.given_up.add(name)


def gather(view: View) -> Draft:
    """One step where the target cannot become complete yet: what it cannot use is the base's, so that others may go.

    So it is where several old revisions hold all there may be of a role, each with one instance that it cannot lose.
    """
    draft = Draft(view)
    give_up_useless(draft)
    *others, base = draft.kept
    lower(draft, others, keep_by_role)
    for role, desired in view.desired.items():
        draft.new[role] = 0
        more = min(desired - draft.replicas[base].get(role, 0), draft.room(role, view.limit(role)))
        if more > 0 and view.same_roles(base):
            draft.replicas[base][role] += more
    return draft


def lower(draft: Draft, names: Iterable[str], keep: Keep) -> None:
    """Lower old revisions to what they must keep; a revision that need keep nothing is given up as a whole."""
    view = draft.view
    for name in names:
        keeps = {role: keep(draft, name, role) for role in view.roles(name)}
        if _rest(draft, name) > 0 and all(count <= 0 for count in keeps.values()):
            draft.given_up.add(name)
            continue
        needed = view.needed(name)
        for role, count in keeps.items():
            stays = count if troubled(view) else min(count, view.role(name, role).hopeful)
            least = 1 if role in needed else 0
            draft.replicas[name][role] = min(draft.replicas[name][role], max(least, stays))


def keep_by_share(draft: Draft, name: str, role: Role) -> int:
    """What the others cannot carry, less what may be missing."""
    view = draft.view
    return ceil(view.whole(name, role) * max(Fraction(0), 1 - _rest(draft, name))) - view.unavailable(name, role)


def keep_by_role(draft: Draft, name: str, role: Role) -> int:
    """What the others do not have of this role, less what may be missing."""
    view = draft.view
    if not view.same_roles(name):
        least = min(Fraction(d - view.unavailable(name, k), d) for k, d in view.desired.items() if d)
        return ceil(view.whole(name, role) * max(Fraction(0), least - _rest(draft, name)))
    others = [other for other in (*draft.kept, view.target) if other != name and draft.share(other) > 0]
    have = sum(draft.ready(other).get(role, 0) for other in others)
    return view.desired[role] - view.unavailable(name, role) - have


def _rest(draft: Draft, name: str) -> Fraction:
    return draft.shares(other for other in (*draft.kept, draft.view.target) if other != name)


def grow(draft: Draft) -> None:
    """Raise the target by the room there is; where its instances do not get ready, the base needs the room more."""
    view = draft.view
    kept = draft.kept
    before = dict(draft.new)
    for role, desired in view.desired.items():
        limit = view.limit(role)
        count = min(desired, before[role] + draft.room(role, limit))
        if kept and troubled(view):
            counts = view.role(view.target, role)
            in_flight = view.unavailable(view.target, role) + limit - desired
            count = min(count, max(before[role], counts.ready + in_flight))
        if kept:
            least = min(1, count) if view.complete(view.target) else 0
            count = max(least, min(count, limit - draft.kept_replicas(role)))
        draft.new[role] = count
    if any(not view.same_roles(name) for name in kept):
        keep_pace(draft, before)
    if kept and troubled(view):
        raise_base(draft)


def completable(draft: Draft) -> bool:
    """Whether the target has, or can have, an instance of every role once what leaves has left."""
    view = draft.view
    return all(
        draft.new[role] > 0 or draft.kept_replicas(role) < view.limit(role)
        for role, desired in view.desired.items()
        if desired > 0
    )


def keep_pace(draft: Draft, before: dict[Role, int]) -> None:
    """Let a role that only the target has grow no faster than the roles that take over from the old revision."""
    view = draft.view
    old_roles = {role for name in draft.kept for role in view.roles(name)}
    common = [role for role, desired in view.desired.items() if desired and role in old_roles]
    pace = max((Fraction(draft.new[role], view.desired[role]) for role in common), default=Fraction(1))
    for role, desired in view.desired.items():
        if role not in old_roles:
            draft.new[role] = min(draft.new[role], max(before[role], ceil(desired * pace)))


def raise_base(draft: Draft) -> None:
    """Let the base take what is missing and the target cannot take: it serves, so its instances get ready."""
    view = draft.view
    base = draft.kept[-1]
    if not view.complete(base) or not view.same_roles(base):
        return
    for role, desired in view.desired.items():
        missing = desired - draft.kept_replicas(role) - draft.new[role]
        if missing > 0 and not view.role(base, role).sick:
            draft.replicas[base][role] += min(missing, draft.room(role, desired))


def troubled(view: View) -> bool:
    """Whether the target's instances do not get ready: then it takes no more room than it must."""
    return view.state.deadline_exceeded or any(view.role(view.target, role).sick for role in view.desired)


def settled(view: View) -> bool:
    """Whether every pod is there and ready, or sick in an old revision: waiting longer changes nothing."""
    for name, revision in view.revisions.items():
        for counts in revision.roles.values():
            arriving = counts.replicas - counts.ready - (0 if name == view.target else counts.sick)
            if arriving > 0 or counts.occupied != counts.replicas:
                return False
    return True
