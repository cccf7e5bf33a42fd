"""A paused rollout stays where it is and still follows the replicas that are desired."""

from collections.abc import Mapping

from epd_operator.api.role import Role
from epd_operator.plan.rollout.draft import Draft
from epd_operator.plan.rollout.proportional import grow
from epd_operator.plan.rollout.view import View


def hold(view: View) -> Draft:
    """One step: what is missing or too much is spread over the revisions that serve, in proportion."""
    draft = Draft(view)
    draft.given_up.update(name for name in view.old if view.hopeless(name))
    if not draft.kept:
        grow(draft)  # what goes serves nothing, so nothing would be kept by waiting
        return draft
    for role, desired in view.desired.items():
        total = draft.kept_replicas(role) + draft.new[role]
        if total < desired:
            _add(draft, role, min(desired - total, draft.room(role, desired)))
        elif total > view.limit(role):
            _remove(draft, role, total - view.limit(role))
    return draft


def _add(draft: Draft, role: Role, count: int) -> None:
    view = draft.view
    serving = [name for name in (*draft.kept, view.target) if view.complete(name) and view.same_roles(name)]
    names = serving or [name for name in draft.kept[-1:] if view.same_roles(name)]
    weights = {name: max(1, draft.replicas[name].get(role, 0)) for name in names}
    for name, more in spread(count, weights).items():
        draft.replicas[name][role] += more


def _remove(draft: Draft, role: Role, count: int) -> None:
    view = draft.view
    if not view.answers(view.target):
        useless = min(count, draft.new[role])
        draft.new[role] -= useless
        count -= useless
    names = [name for name in (*draft.kept, view.target) if view.same_roles(name)]
    weights = {name: draft.replicas[name][role] - 1 for name in names if draft.replicas[name][role] > 1}
    for name, less in spread(min(count, sum(weights.values())), weights).items():
        draft.replicas[name][role] -= less


def spread(amount: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Whole parts of an amount in proportion to weights: the largest remainders get one more. No weights, no parts."""
    total = sum(weights.values())
    if not total:
        return {}
    parts = {name: amount * weight // total for name, weight in weights.items()}
    by_remainder = sorted(weights, key=lambda name: (-(amount * weights[name] % total), name))
    for name in by_remainder[: amount - sum(parts.values())]:
        parts[name] += 1
    return parts
