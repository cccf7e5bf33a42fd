"""Rollouts step by step: each case names what the cluster is and what is right to do."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from epd_operator.api.role import Role
from epd_operator.api.rollout import RolloutStrategy
from epd_operator.plan.rollout import Phase, RevisionState, RoleState, RolloutState, Step, next_step
from epd_operator.plan.rollout.drain import leave_after
from epd_operator.plan.rollout.hold import spread
from epd_operator.plan.rollout.simulation import Stage, simulate

E, P, D = Role.ENCODE, Role.PREFILL, Role.DECODE
DRAIN = {E: 10, D: 140}


def revision(serves: bool = True, idle: int | None = None, **roles: int | RoleState) -> RevisionState:
    """Roles by name; a number is so many replicas, all ready."""
    states = {
        Role(name): counts if isinstance(counts, RoleState) else RoleState(counts, counts, desired=counts)
        for name, counts in roles.items()
    }
    return RevisionState(states, serves, idle)


def starting(count: int) -> RoleState:
    return RoleState(replicas=count, ready=0)


def fresh(count: int) -> RoleState:
    """Ready, for less than minReadySeconds."""
    return RoleState(replicas=count, ready=0, answering=count)


def state(
    desired: Mapping[Role, int], settings: Mapping[str, Any] | None = None, **revisions: RevisionState
) -> RolloutState:
    return RolloutState("new", desired, revisions, **(settings or {}))


def moves(before: RolloutState, step: Step) -> dict[str, dict[str, int]]:
    """What the step changes: replicas by revision and role."""
    changes: dict[str, dict[str, int]] = {}
    for name, roles in step.replicas.items():
        for role, replicas in roles.items():
            known = before.revisions.get(name, RevisionState({})).roles.get(role, RoleState())
            if known.replicas != replicas:
                changes.setdefault(name, {})[str(role)] = replicas
    return changes


def stages(before: RolloutState) -> list[Stage]:
    return list(simulate(before))


ED = {E: 2, D: 4}
SURGE = {"max_surge": 1, "max_unavailable": 0}
BLUE_GREEN = {"strategy": RolloutStrategy.BLUE_GREEN, "max_surge": "100%", "max_unavailable": 0}
RECREATE = {"strategy": RolloutStrategy.RECREATE}
old = revision(encode=2, decode=4)

STEPS: dict[str, tuple[RolloutState, dict[str, dict[str, int]], dict[str, int]]] = {
    "nothing exists: all at once": (
        state({E: 2, P: 3, D: 4}),
        {"new": {"encode": 2, "prefill": 3, "decode": 4}},
        {},
    ),
    "scaled: all at once, down too": (
        state({E: 1, D: 6}, new=revision(encode=2, decode=4)),
        {"new": {"encode": 1, "decode": 6}},
        {"new": 100},
    ),
    "no surge: the old gives one of each": (
        state(ED, old=old),
        {"old": {"encode": 1, "decode": 3}},
        {"old": 100},
    ),
    "surge: the new begins beside the old": (
        state(ED, SURGE, old=old),
        {"new": {"encode": 1, "decode": 1}},
        {"old": 100},
    ),
    "pods on their way out hold their devices": (
        state(ED, old=revision(encode=RoleState(1, 1, pods=1, terminating=1), decode=RoleState(3, 3, pods=4))),
        {},
        {"old": 100},
    ),
    "a new revision with a role missing gets no traffic": (
        state(ED, old=revision(encode=1, decode=3), new=revision(False, encode=1, decode=starting(1))),
        {},
        {"old": 100},
    ),
    "the old keeps what the new cannot carry, though its encoders are half-way": (
        state(ED, old=revision(encode=1, decode=3), new=revision(False, encode=1, decode=1)),
        {"old": {"decode": 2}},
        {"old": 67, "new": 33},
    ),
    "the last of the old gets no new requests, and leaves when they have ended": (
        state(ED, {"leave_after": DRAIN}, old=revision(encode=1, decode=1), new=revision(encode=1, decode=3)),
        {},
        {"new": 100},
    ),
    "encoders leave first": (
        state(
            ED, {"leave_after": DRAIN}, old=revision(False, 10, encode=1, decode=1), new=revision(encode=1, decode=3)
        ),
        {"old": {"encode": 0}},
        {"new": 100},
    ),
    "decode leaves when encoders' last requests have passed": (
        state(
            ED, {"leave_after": DRAIN}, old=revision(False, 140, encode=0, decode=1), new=revision(encode=2, decode=3)
        ),
        {"old": {"decode": 0}},
        {"new": 100},
    ),
    "sick old pods go first, and more of them than may be missing": (
        state({D: 4}, old=revision(decode=RoleState(4, 2, sick=2))),
        {"old": {"decode": 2}},
        {"old": 100},
    ),
    "an old revision that lacks a role for good gives all it has": (
        state({P: 2, D: 3}, old=revision(prefill=RoleState(2, 0, sick=2), decode=3)),
        {"old": {"prefill": 0, "decode": 0}},
        {},
    ),
    "an old revision whose role may come back keeps what it must": (
        state({P: 2, D: 3}, old=revision(prefill=starting(2), decode=3)),
        {"old": {"prefill": 1, "decode": 2}},
        {},
    ),
    "what has been ready for a moment only goes on serving": (
        state(ED, SURGE, old=revision(encode=fresh(2), decode=fresh(3)), new=revision(False, encode=1, decode=1)),
        {"new": {"decode": 2}},
        {"old": 75, "new": 25},
    ),
    "changed just after it got ready: it goes on serving": (
        state(ED, SURGE, old=revision(encode=fresh(2), decode=fresh(4)), new=revision(False, encode=1, decode=0)),
        {"new": {"decode": 1}},
        {"old": 100},
    ),
    "closed with nothing else to serve: it serves again at once when it answers": (
        state(ED, new=revision(False, 5, encode=2, decode=fresh(4))),
        {},
        {"new": 100},
    ),
    "one replica: first the roles that can overlap": (
        state({E: 1, D: 4}, old=revision(encode=1, decode=4)),
        {"old": {"decode": 3}},
        {"old": 100},
    ),
    "one replica: the outage begins when all else is proved": (
        state(
            {E: 1, D: 4},
            {"leave_after": DRAIN},
            old=revision(encode=1, decode=3),
            new=revision(False, encode=0, decode=1),
        ),
        {},
        {},
    ),
    "one replica with surge: no outage": (
        state({E: 1, D: 1}, SURGE, old=revision(encode=1, decode=1), new=revision(False, encode=1, decode=1)),
        {"old": {"encode": 0, "decode": 0}},
        {"new": 100},
    ),
    "a third revision takes the place of one that never served": (
        state({D: 4}, old=revision(decode=3), between=revision(False, decode=starting(1))),
        {"between": {"decode": 0}},
        {"old": 100},
    ),
    "back to the old one: it only grows again": (
        replace(state({D: 4}, old=revision(decode=3), new=revision(False, decode=starting(1))), target="old"),
        {"new": {"decode": 0}},
        {"old": 100},
    ),
    "the old was lowered before traffic had moved, and then the target changed: what is ready and stays serves": (
        state(
            {D: 2},
            {"max_surge": 2, "max_unavailable": 0},
            old=revision(decode=RoleState(0, 2, pods=2)),
            between=revision(False, decode=2),
        ),
        {},
        {"between": 100},
    ),
    "more desired on the way: the new grows": (
        state({D: 6}, old=revision(decode=3), new=revision(decode=1)),
        {"new": {"decode": 3}},
        {"old": 75, "new": 25},
    ),
    "more desired while the new is sick: the old grows": (
        state({D: 6}, old=revision(decode=3), new=revision(False, decode=RoleState(1, 0, sick=1))),
        {"old": {"decode": 5}},
        {"old": 100},
    ),
    "paused: nothing moves": (
        state({D: 4}, {"paused": True}, old=revision(decode=3), new=revision(decode=1)),
        {},
        {"old": 75, "new": 25},
    ),
    "paused: what is desired is followed in proportion": (
        state({D: 8}, {"paused": True}, old=revision(decode=3), new=revision(decode=1)),
        {"old": {"decode": 6}, "new": {"decode": 2}},
        {"old": 75, "new": 25},
    ),
    "paused at the start: nothing is replaced, so all is made": (
        state({D: 2}, {"paused": True}),
        {"new": {"decode": 2}},
        {},
    ),
    "blue-green: everything twice": (
        state(ED, BLUE_GREEN, old=old),
        {"new": {"encode": 2, "decode": 4}},
        {"old": 100},
    ),
    "blue-green: complete is not enough": (
        state(ED, BLUE_GREEN, old=old, new=revision(False, encode=2, decode=RoleState(4, 3))),
        {},
        {"old": 100},
    ),
    "blue-green: traffic moves at once": (
        state(ED, {**BLUE_GREEN, "leave_after": DRAIN}, old=old, new=revision(False, encode=2, decode=4)),
        {},
        {"new": 100},
    ),
    "blue-green: a pod that fails after the move does not move traffic back": (
        state(
            ED,
            {**BLUE_GREEN, "leave_after": DRAIN},
            old=revision(False, 5, encode=2, decode=4),
            new=revision(encode=2, decode=RoleState(4, 3)),
        ),
        {},
        {"new": 100},
    ),
    "recreate: all of the old first": (
        state(ED, RECREATE, old=old),
        {"old": {"encode": 0, "decode": 0}},
        {},
    ),
    "recreate: nothing new while an old pod is left": (
        state(ED, RECREATE, old=revision(False, 99, encode=0, decode=RoleState(0, 0, terminating=1))),
        {},
        {},
    ),
    "a role more: it keeps pace": (
        state(
            {E: 1, P: 4, D: 4},
            old=revision(encode=1, decode=RoleState(3, 3, desired=4)),
            new=revision(False, encode=0, prefill=0, decode=0),
        ),
        {"new": {"prefill": 1, "decode": 1}},
        {"old": 100},
    ),
    "suspended: everything goes": (
        state({E: 0, D: 0}, old=revision(encode=1, decode=1), new=revision(encode=1, decode=1)),
        {"old": {"encode": 0, "decode": 0}, "new": {"encode": 0, "decode": 0}},
        {},
    ),
    "encoders woken from zero on the way: the old one still answers text": (
        state(
            {E: 1, D: 4},
            old=revision(encode=RoleState(0, 0), decode=3),
            new=revision(False, encode=0, decode=starting(1)),
        ),
        {"new": {"encode": 1}},
        {"old": 100},
    ),
}


@pytest.mark.parametrize("case", STEPS)
def test_next_step(case: str) -> None:
    before, changes, serving = STEPS[case]
    step = next_step(before)
    assert moves(before, step) == changes
    assert dict(step.serving) == serving


def test_all_steps_of_the_default() -> None:
    told = [
        (
            {
                str(role): (step.replicas.get("old", {}).get(role, 0), count)
                for role, count in step.replicas["new"].items()
            },
            dict(step.serving),
        )
        for step in (stage.step for stage in stages(state(ED, {"leave_after": DRAIN}, old=old)))
    ]
    assert told == [
        ({"encode": (1, 0), "decode": (3, 0)}, {"old": 100}),
        ({"encode": (1, 1), "decode": (3, 1)}, {"old": 100}),
        ({"encode": (1, 1), "decode": (2, 1)}, {"old": 67, "new": 33}),
        ({"encode": (1, 1), "decode": (2, 2)}, {"old": 67, "new": 33}),
        ({"encode": (1, 1), "decode": (1, 2)}, {"old": 33, "new": 67}),
        ({"encode": (1, 1), "decode": (1, 3)}, {"old": 33, "new": 67}),
        ({"encode": (1, 1), "decode": (1, 3)}, {"new": 100}),
        ({"encode": (0, 1), "decode": (1, 3)}, {"new": 100}),
        ({"encode": (0, 2), "decode": (1, 3)}, {"new": 100}),
        ({"encode": (0, 2), "decode": (0, 3)}, {"new": 100}),
        ({"encode": (0, 2), "decode": (0, 4)}, {"new": 100}),
        ({"encode": (0, 2), "decode": (0, 4)}, {"new": 100}),
    ]


def test_o13_no_request_needs_two_revisions_and_none_finds_a_role_missing() -> None:
    for stage in stages(state({E: 2, P: 2, D: 2}, old=revision(encode=2, prefill=2, decode=2))):
        for name in stage.step.serving:
            assert all(stage.step.replicas[name].values())
        assert stage.step.serving


def test_o15_no_surge_pod_waits_for_a_device_by_default() -> None:
    for stage in stages(state(ED, old=old)):
        totals = {role: sum(roles.get(role, 0) for roles in stage.step.replicas.values()) for role in ED}
        assert all(totals[role] <= ED[role] for role in ED)


def test_o36_finished_means_as_desired_and_nothing_else_left() -> None:
    done = state({D: 2}, new=revision(decode=2))
    assert next_step(done).phase is Phase.FINISHED
    for other in (
        state({D: 2}, new=revision(decode=RoleState(2, 1))),
        state({D: 2}, new=revision(decode=RoleState(2, 2, pods=3))),
        state({D: 2}, new=revision(decode=2), old=revision(False, 999, decode=RoleState(0, 0, terminating=1))),
    ):
        assert next_step(other).phase is Phase.WAITING, other


def test_drained_revisions_may_be_deleted() -> None:
    step = next_step(state({D: 2}, new=revision(decode=2), old=revision(False, 999, decode=0)))
    assert step.deletable == ("old",)
    assert step.phase is Phase.FINISHED


def test_past_its_deadline_the_rollout_is_stalled_and_the_old_serves() -> None:
    stuck = state({D: 4}, old=revision(decode=3), new=revision(False, decode=RoleState(1, 0, sick=1)))
    step = next_step(replace(stuck, deadline_exceeded=True))
    assert step.phase is Phase.STALLED
    assert dict(step.serving) == {"old": 100}
    assert step.reason == "waits for 1 decode of new to get ready, 1 of them sick"


def test_a_deadline_stops_nothing_that_can_be_done() -> None:
    ready = state({D: 4}, {"deadline_exceeded": True}, old=revision(decode=3), new=revision(decode=1))
    assert next_step(ready).phase is Phase.MOVING


@pytest.mark.parametrize("settings", [{}, SURGE, BLUE_GREEN, RECREATE])
def test_what_never_served_and_does_not_goes_at_once(settings: dict[str, Any]) -> None:
    starting = RevisionState({E: RoleState(2, 0), D: RoleState(4, 4)})
    step = next_step(state(ED, {"leave_after": DRAIN, **settings}, old=starting))
    assert step.replicas["old"] == {E: 0, D: 0}


def test_where_no_request_can_pass_nothing_waits_for_the_last() -> None:
    broken = RevisionState({E: RoleState(2, 2), D: RoleState(4, 0, sick=4)}, serves=True)
    assert next_step(state(ED, {"leave_after": DRAIN}, old=broken)).replicas["old"] == {E: 0, D: 0}
    young = RevisionState({E: RoleState(2, 0, answering=2), D: RoleState(4, 0, answering=1)}, serves=True)
    recreated = state(ED, {"leave_after": DRAIN, "strategy": RolloutStrategy.RECREATE}, old=young)
    assert next_step(recreated).replicas["old"] == {E: 2, D: 4}
    draining = revision(False, 25, encode=0, decode=1)
    assert next_step(state(ED, {"leave_after": DRAIN}, old=draining)).replicas["old"] == {E: 0, D: 1}


def test_it_says_when_to_ask_again() -> None:
    leaving = state(
        ED, {"leave_after": DRAIN}, old=revision(False, 25, encode=0, decode=1), new=revision(encode=2, decode=3)
    )
    step = next_step(leaving)
    assert step.requeue_seconds == 115
    assert "decode of old stay until its last requests have ended" in step.reason


def test_steps_are_values() -> None:
    assert next_step(state(ED, old=old)) == next_step(state(ED, old=old))


def test_roles_leave_in_the_order_of_requests() -> None:
    longest = {E: 120, P: 100, D: 600}
    assert leave_after(longest) == {E: 10, P: 10 + 10 + 120, D: 140 + 10 + 100}
    assert leave_after({D: 600}) == {D: 10}
    assert leave_after({P: 100, D: 600}) == {P: 10, D: 120}


@pytest.mark.parametrize(
    ("amount", "weights", "parts"),
    [
        (4, {"a": 3, "b": 1}, {"a": 3, "b": 1}),
        (1, {"a": 1, "b": 1}, {"a": 1, "b": 0}),
        (5, {"a": 2, "b": 1}, {"a": 3, "b": 2}),
        (0, {"a": 2}, {"a": 0}),
        (3, {}, {}),
    ],
)
def test_spread(amount: int, weights: dict[str, int], parts: dict[str, int]) -> None:
    assert spread(amount, weights) == parts
