"""What holds for every rollout, from every state.

EPD_ROLLOUT_CASES is the number of cases of each of the five properties; `make rollout-cases` asks for 20,000.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epd_operator.api.bounds import Bounds
from epd_operator.api.role import Role
from epd_operator.api.rollout import RolloutStrategy
from epd_operator.plan.rollout import Phase, RolloutState, Step, next_step
from epd_operator.plan.rollout.view import View
from tests.unit.plan.rollout_world import Pods, World

CASES = int(os.environ.get("EPD_ROLLOUT_CASES", "400"))
E, P, D = Role.ENCODE, Role.PREFILL, Role.DECODE
TOPOLOGIES = [(D,), (P, D), (E, D), (E, P, D)]
PROPORTIONAL, RECREATE, BLUE_GREEN = RolloutStrategy
cases = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)

amounts = st.one_of(st.integers(0, 3), st.sampled_from(["0%", "10%", "25%", "50%", "100%"]))
counts = st.integers(1, 5)


@st.composite
def worlds(
    draw: st.DrawFn, *, strategies: tuple[RolloutStrategy, ...] = tuple(RolloutStrategy), changes_topology: bool = True
) -> World:
    """A deployment that one revision serves, and a new target."""
    old_roles = draw(st.sampled_from(TOPOLOGIES))
    new_roles = draw(st.sampled_from(TOPOLOGIES)) if changes_topology and draw(st.integers(0, 3)) == 0 else old_roles
    old = {role: draw(counts) for role in old_roles}
    desired = {role: old.get(role, 0) or draw(counts) for role in new_roles}
    if draw(st.integers(0, 3)) == 0:
        desired = {role: draw(counts) for role in new_roles}
    state = RolloutState(
        target="new",
        desired=desired,
        revisions={},
        strategy=draw(st.sampled_from(strategies)),
        max_surge=draw(amounts),
        max_unavailable=draw(amounts),
        leave_after=draw(st.sampled_from([{}, {E: 0, P: 130, D: 250}, dict.fromkeys(Role, 0)])),
    )
    pods = {role: Pods(replicas=count, ready=count, desired=count) for role, count in old.items()}
    return World(state, {"old": pods}, serves={"old"})


def run(world: World, limit: int = 400) -> list[Step]:
    """Steps until nothing moves, in a cluster where everything succeeds at once."""
    steps: list[Step] = []
    for _ in range(limit):
        step = next_step(world.observe())
        if step.phase is not Phase.MOVING and steps and steps[-1].phase is not Phase.MOVING:
            return steps
        steps.append(step)
        world.apply(step)
        world.settle()
    raise AssertionError(f"no end after {limit} steps: {steps[-3:]}")


def assert_at_target(world: World) -> None:
    step = next_step(world.observe())
    assert step.phase is Phase.FINISHED, (step, world)
    target = world.revisions[world.state.target]
    assert {role: target[role].ready for role in world.state.desired} == dict(world.state.desired)
    assert list(step.serving) == ([world.state.target] if any(world.state.desired.values()) else [])
    assert all(pods.replicas == 0 for name, _, pods in world.cells() if name != world.state.target)


def chaos(world: World, chance: Random, steps: int) -> None:
    """Pods fail, the operator is killed half-way, the spec changes: desired, target, strategy, pause."""
    names = ["old", "new", "newer"]
    for _ in range(steps):
        step = next_step(world.observe())
        assert_legal(world.observe(), step)
        before = world.totals()
        world.apply(step, chance)
        assert_no_more_than(world, before)
        world.happen(chance, calm=False)
        if chance.random() < 0.1:
            roles = dict(world.state.desired)
            roles[chance.choice(list(roles))] = chance.randint(0, 5)
            world.state = replace(world.state, desired=roles)
        if chance.random() < 0.05:
            target = chance.choice(names)
            existing = list(world.revisions.get(target, world.state.desired))
            desired = {role: world.state.desired.get(role, chance.randint(1, 4)) for role in existing}
            world.state = replace(world.state, target=target, desired=desired)
        if chance.random() < 0.05:
            world.state = replace(world.state, paused=not world.state.paused)
        if chance.random() < 0.03:
            world.state = replace(world.state, strategy=chance.choice(list(RolloutStrategy)))
        if chance.random() < 0.1:
            world.state = replace(world.state, deadline_exceeded=not world.state.deadline_exceeded)
        if chance.random() < 0.1:
            role = chance.choice(list(world.state.desired))
            world.bad ^= {(chance.choice(names), role)}


def bounds_of(state: RolloutState) -> Bounds:
    return Bounds(state.max_surge, state.max_unavailable)


def limit_of(state: RolloutState, role: Role) -> int:
    desired = state.desired.get(role, 0)
    others = [
        max(r.roles[role].desired or 0, r.roles[role].replicas)
        for r in state.revisions.values()
        if role in r.roles and set(r.roles) != set(state.desired)
    ]
    most = max([desired, *others])
    if state.strategy is BLUE_GREEN and not state.paused:
        return most + desired
    if state.strategy is RECREATE and not state.paused:
        return most
    return most + bounds_of(state).surge(desired)


def assert_no_more_than(world: World, before: Mapping[Role, int]) -> None:
    """Never more than desired and surge; where there was more already, it does not grow."""
    state = world.observe()
    if not View(state).old:
        return  # nothing is replaced: plain scaling
    for role, total in world.totals().items():
        assert total <= max(limit_of(state, role), before.get(role, 0)), (role, total, before, state)


def effective(state: RolloutState, step: Step, role: Role, *, after: bool) -> int:
    """Instances of a role that serve in revisions that have every role, now or with the step's replicas."""
    total = 0
    for name, revision in state.revisions.items():
        ready = {
            r: min(c.ready, step.replicas[name].get(r, c.replicas)) if after else min(c.ready, c.replicas)
            for r, c in revision.roles.items()
        }
        wanted = [r for r in revision.roles if state.desired.get(r, 1) > 0]
        serves = name in step.serving if after else revision.serves
        if serves and all(ready[r] > 0 for r in wanted):
            total += ready.get(role, 0)
    return total


def assert_legal(state: RolloutState, step: Step) -> None:
    """Bounds and traffic of one step, whatever the state."""
    view = View(state)
    complete = [
        n
        for n, r in state.revisions.items()
        if not r.drained and all(c.staying for k, c in r.roles.items() if state.desired.get(k, 1))
    ]
    assert step.serving == {} or sum(step.serving.values()) == 100
    assert min(step.serving.values(), default=1) > 0
    for name in step.serving:
        revision = state.revisions[name]
        if not view.answers(name):
            assert revision.serves, "begins to serve with a role missing"
            assert not complete, "serves with a role missing beside a revision that is complete"
        for role, counts in revision.roles.items():
            if counts.replicas and state.desired.get(role, 1):
                assert step.replicas[name][role] > 0 or not counts.passing, "serves and loses a role"
    assert min(replicas for roles in step.replicas.values() for replicas in roles.values()) >= 0
    for name in step.deletable:
        assert state.revisions[name].drained
    if not step.serving and any(state.desired.values()) and not outage_is_inevitable(state):
        cut = [name for name in state.revisions if state.revisions[name].serves and view.answers(name)]
        assert not cut, f"{cut} can be passed, and nothing serves"


@given(worlds())
@cases
def test_every_rollout_ends_at_its_target(world: World) -> None:
    run(world)
    assert_at_target(world)


@given(worlds(), st.integers(0, 2**32))
@cases
def test_bounds_hold_in_every_state_of_a_rollout(world: World, seed: int) -> None:
    chance = Random(seed)
    for _ in range(600):
        state = world.observe()
        step = next_step(state)
        assert_legal(state, step)
        assert_bounds(state, step)
        before = world.totals()
        world.apply(step, chance)
        assert_no_more_than(world, before)
        if step.phase is Phase.FINISHED:
            break
        world.happen(chance, calm=True)
    assert_at_target(world)


@given(worlds(), st.integers(0, 2**32), st.integers(0, 60))
@cases
def test_progress_from_any_state(world: World, seed: int, steps: int) -> None:
    chance = Random(seed)
    chaos(world, chance, steps)
    world.bad.clear()
    world.state = replace(world.state, paused=False, deadline_exceeded=False)
    for _ in range(600):
        state = world.observe()
        step = next_step(state)
        assert_legal(state, step)
        before = world.totals()
        world.apply(step)
        assert_no_more_than(world, before)
        if step.phase is Phase.FINISHED:
            break
        world.happen(chance, calm=True)
    assert_at_target(world)


def assert_bounds(state: RolloutState, step: Step) -> None:
    """What serves never falls below desired less what may be missing by what a step does."""
    if state.strategy is not PROPORTIONAL:
        return
    surge = [bounds_of(state).surge(d) for d in state.desired.values()]
    missing = {k: bounds_of(state).unavailable(d) for k, d in state.desired.items()}
    alone = any(d - missing[k] <= 0 for k, d in state.desired.items()) and 0 in surge
    if not step.serving and alone:
        return
    view = View(state)
    least = min(Fraction(d - missing[k], d) for k, d in state.desired.items())
    for name in state.revisions:
        wholes = {k: (view.whole(name, k), view.unavailable(name, k)) for k in state.revisions[name].roles}
        least = min([least, *(Fraction(max(0, d - u), d) for d, u in wholes.values() if d)])
    before = sum((view.share(n) for n in state.revisions), Fraction(0))
    after = sum(
        (
            view.share(n, {k: min(c.ready, step.replicas[n].get(k, 0)) for k, c in state.revisions[n].roles.items()})
            for n in step.serving
        ),
        Fraction(0),
    )
    if len(view.old) < 2:
        assert after >= min(before, least), (before, after, least)
    if all(set(r.roles) == set(state.desired) for r in state.revisions.values()):
        for role, desired in state.desired.items():
            floor = desired - missing[role]
            was, will = (effective(state, step, role, after=after) for after in (False, True))
            assert will >= min(was, floor), (role, was, will, floor)


@given(worlds(strategies=(PROPORTIONAL,), changes_topology=False), st.integers(0, 2**32))
@cases
def test_bounds_hold_when_the_target_changes_on_the_way(world: World, seed: int) -> None:
    """A third revision, or back to the old one, at any moment of a rollout in which no pod fails."""
    chance = Random(seed)
    moment = {chance.randint(0, 40): "newer", chance.randint(0, 80): chance.choice(["old", "new", "newer"])}
    for time in range(900):
        world.state = replace(world.state, target=moment.get(time, world.state.target))
        state = world.observe()
        step = next_step(state)
        assert_legal(state, step)
        assert_bounds(state, step)
        before = world.totals()
        world.apply(step, chance)
        assert_no_more_than(world, before)
        if step.phase is Phase.FINISHED and time > 80:
            break
        world.happen(chance, calm=True)
    assert_at_target(world)


@given(worlds(changes_topology=False), st.integers(0, 2**32))
@cases
def test_a_bad_revision_leaves_the_old_one_serving_and_is_rolled_back(world: World, seed: int) -> None:
    chance = Random(seed)
    state = world.state
    roles = list(state.desired)
    world.bad = {("new", chance.choice(roles))}
    for _ in range(60):
        step = next_step(world.observe())
        assert_bounds(world.observe(), step)
        world.apply(step)
        world.settle()
    quiet = [next_step(world.observe()) for _ in range(2)]
    assert quiet[0] == quiet[1]
    assert quiet[0].phase is Phase.WAITING, quiet[0]
    late = replace(world.observe(), deadline_exceeded=True)
    assert next_step(late).phase in (Phase.STALLED, Phase.MOVING)
    if not outage_is_inevitable(state):
        assert list(quiet[0].serving) == ["old"]
    world.state = replace(state, target="old")
    run(world)
    assert_at_target(world)


def outage_is_inevitable(state: RolloutState) -> bool:
    """By the user's settings: all of the old goes first, or a role has one instance and no surge."""
    return state.strategy is RECREATE or (
        state.strategy is PROPORTIONAL and any(d == 1 and not bounds_of(state).surge(d) for d in state.desired.values())
    )
