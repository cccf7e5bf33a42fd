"""Recreate: all of the old goes before anything of the new starts. An outage, by choice."""

from epd_operator.plan.rollout.draft import Draft
from epd_operator.plan.rollout.view import View


def recreate(view: View) -> Draft:
    """One step while something old is left: give it up. With nothing left the planner scales the target at once."""
    draft = Draft(view)
    draft.given_up.update(view.old)
    for role, desired in view.desired.items():
        draft.new[role] = min(draft.new[role], desired)
    return draft
