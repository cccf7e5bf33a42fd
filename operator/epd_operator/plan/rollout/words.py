"""What a step does or waits for, in words."""

from collections.abc import Mapping

from epd_operator.plan.rollout.draft import Draft
from epd_operator.plan.rollout.step import Phase
from epd_operator.plan.rollout.view import View


def change_words(draft: Draft, serving: Mapping[str, int]) -> str:
    """What changes: replicas by revision, and which revisions begin or cease to get new requests."""
    view = draft.view
    words = []
    for name, roles in draft.replicas.items():
        changes = [
            f"{role} {view.role(name, role).replicas} to {replicas}"
            for role, replicas in roles.items()
            if replicas != view.role(name, role).replicas
        ]
        if changes:
            words.append(f"{name}: {', '.join(changes)}")
    begin = [name for name in serving if not view.revisions[name].serves]
    cease = [name for name, revision in view.revisions.items() if revision.serves and name not in serving]
    words += [f"{name} begins to serve" for name in begin]
    words += [f"{name} gets no new requests" for name in cease]
    return "; ".join(words)


def waiting_words(draft: Draft, phase: Phase) -> str:
    """What is waited for."""
    view = draft.view
    if phase is Phase.FINISHED:
        return f"{view.target} is as desired"
    words = [*_leaving(view), *_draining(draft), *_starting(view)]
    if phase is Phase.PAUSED:
        words.insert(0, "paused")
    return "; ".join(words) or f"{view.target} and the old revisions are as they must be"


def _starting(view: View) -> list[str]:
    words = []
    for role in view.desired:
        counts = view.role(view.target, role)
        missing = counts.replicas - counts.ready
        if missing > 0:
            sick = f", {counts.sick} of them sick" if counts.sick else ""
            words.append(f"waits for {missing} {role} of {view.target} to get ready{sick}")
    return words


def _leaving(view: View) -> list[str]:
    words = []
    for name in view.old:
        for role, counts in view.revisions[name].roles.items():
            leaving = counts.occupied - counts.replicas
            if leaving > 0:
                words.append(f"waits for {leaving} {role} of {name} to go")
    return words


def _draining(draft: Draft) -> list[str]:
    words = []
    for name in sorted(draft.given_up):
        roles = [str(role) for role, replicas in draft.replicas[name].items() if replicas]
        if roles:
            words.append(f"{' and '.join(roles)} of {name} stay until its last requests have ended")
    return words
