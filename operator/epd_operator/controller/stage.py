"""How far the change from one revision to the next is, and what may be done now. Pure.

A revision gets traffic by its endpoints, so a set of workloads is made whole before the one before it goes; with
Recreate the old one goes first.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from epd_operator.api.rollout import RolloutStrategy


@dataclass(frozen=True, slots=True)
class RevisionSet:
    """The workloads of all roles in one revision."""

    serves: bool
    """Each role that shall have instances has a ready one."""
    done: bool
    """Each role has all that it shall have, ready, and nothing else."""
    number: int
    """Of its rendering: the higher, the later."""


@dataclass(frozen=True, slots=True)
class Stage:
    """What may be done now."""

    make_target: bool
    """Make and update the target's workloads."""
    remove_old: bool
    """Remove the workloads of all other revisions."""
    lead: str
    """The revision whose rendering decides about what all revisions share: proxy, policies."""
    rolling: bool
    """Another revision than the target is still there."""


def stage(
    target: str, sets: Mapping[str, RevisionSet], strategy: RolloutStrategy | None, *, paused: bool = False
) -> Stage:
    """The stage of the change to `target`. `sets`: the revisions that have workloads, the target perhaps among them."""
    old = {revision: each for revision, each in sets.items() if revision != target}
    if not old:
        return Stage(make_target=True, remove_old=False, lead=target, rolling=False)
    latest = max(old, key=lambda revision: (old[revision].serves, old[revision].number))
    if paused:
        return Stage(make_target=target in sets, remove_old=False, lead=latest, rolling=True)
    if strategy is RolloutStrategy.RECREATE:
        return Stage(make_target=False, remove_old=True, lead=latest, rolling=True)
    done = target in sets and sets[target].done
    # A set that does not serve is no loss, and its pods may hold the devices that the target waits for.
    go = done or not old[latest].serves
    return Stage(make_target=True, remove_old=go, lead=target if go else latest, rolling=True)
