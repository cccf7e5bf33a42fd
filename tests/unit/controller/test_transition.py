"""What holds for every rollout through the decider: each decision is applied, in whole or cut off, under chance."""

import copy
import os
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epd_operator.api.bounds import Bounds
from epd_operator.api.conditions import Reason
from epd_operator.api.role import Role
from epd_operator.api.rollout import Rollout, RolloutStrategy
from epd_operator.controller.pods import Pod, Trouble
from epd_operator.controller.transition import Transition
from epd_operator.plan.rollout import Phase, RoleState
from tests.unit.controller.rollout_cluster import RolloutCluster
from tests.unit.controller.seen import Small, instance

CASES = int(os.environ.get("EPD_DECIDER_CASES", "15"))
cases = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck), print_blob=True)
ROLES = (Role.ENCODE, Role.DECODE)


def changed(small: Small, **spec: Any) -> None:
    small.body = copy.deepcopy(small.body)
    small.body["spec"] |= spec
    small.body["metadata"]["generation"] += 1


def engine(length: int) -> dict[str, Any]:
    return {"engine": {"version": "0.33.0", "args": [f"--max-model-len={length}"]}}


@st.composite
def clusters(draw: st.DrawFn) -> RolloutCluster:
    """One revision that serves."""
    strategy = draw(st.sampled_from([None, *RolloutStrategy]))
    rollout = {"maxSurge": draw(st.integers(0, 2)), "maxUnavailable": draw(st.integers(1, 2))}
    if strategy is not None:
        rollout["strategy"] = strategy.value
    cluster = RolloutCluster(
        instance(
            encode={"replicas": draw(st.integers(1, 3)), "drainTimeoutSeconds": 5},
            decode={"replicas": draw(st.integers(1, 4))},
            rollout=rollout,
            **engine(1000),
        )
    )
    finish(cluster)
    return cluster


def transition_of(cluster: Small) -> Transition:
    found = cluster.decide().transition
    assert found is not None
    return found


def finish(cluster: RolloutCluster) -> None:
    """Until nothing is written and nothing waited for."""
    for _ in range(200):
        cluster.settle_pods()
        if not cluster.step() and transition_of(cluster).step.phase is Phase.FINISHED:
            return
    raise AssertionError(f"no end: {transition_of(cluster).step}, {cluster.log[-10:]}")


def desired(cluster: RolloutCluster) -> dict[Role, int]:
    return {role: cluster.body["spec"][role]["replicas"] for role in ROLES}


def limits(cluster: RolloutCluster) -> dict[Role, int]:
    rollout = Rollout.model_validate(cluster.body["spec"]["rollout"])
    twice = 2 if rollout.strategy is RolloutStrategy.BLUE_GREEN else 1
    bounds = Bounds.of(rollout)
    return {role: count * twice + bounds.surge(count) for role, count in desired(cluster).items()}


def assert_done(cluster: RolloutCluster) -> None:
    found = {child.revision for child in cluster.children.values()}
    target = transition_of(cluster).state.target
    assert found == {target, None}
    assert cluster.open() == {target}
    assert {role: cluster.ready(target, role) for role in ROLES} == desired(cluster)
    cluster.restart()
    assert cluster.step() == []  # a restart only reads


@given(clusters(), st.integers(0, 2**32))
@cases
def test_a_rollout_that_is_cut_off_anywhere_keeps_its_bounds_and_ends(cluster: RolloutCluster, seed: int) -> None:
    chance = Random(seed)
    changed(cluster, **engine(2000))
    limit = limits(cluster)
    for _ in range(60):
        before = cluster.open()
        cluster.part(chance)
        for role, count in cluster.occupied().items():
            assert count <= limit.get(role, 0), (role, cluster.counts)
        for revision in cluster.open() - before:
            assert all(cluster.ready(revision, role) for role in ROLES), "it begins to serve with a role missing"
        for revision, role, pods in cluster.cells():
            assert pods.replicas or revision not in cluster.open() or not cluster.ready(revision, role)
        if chance.random() < 0.2:
            cluster.restart()
        cluster.happen(chance)
    finish(cluster)
    assert_done(cluster)


@given(clusters(), st.integers(0, 2**32))
@cases
def test_whatever_changes_amid_a_rollout_it_ends_at_what_is_asked_last(cluster: RolloutCluster, seed: int) -> None:
    chance = Random(seed)
    for _ in range(40):
        match chance.randint(0, 9):
            case 0:
                changed(cluster, **engine(chance.choice((1000, 2000, 3000))))
            case 1:
                role = chance.choice(ROLES)
                changed(cluster, **{role: {**cluster.body["spec"][role], "replicas": chance.randint(1, 4)}})
            case 2:
                rollout = cluster.body["spec"]["rollout"]
                changed(cluster, rollout={**rollout, "paused": not rollout.get("paused")})
            case 3:
                cluster.restart()
        names = {str(child.revision) for child in cluster.children.values()}
        bad = frozenset((name, role) for name in names for role in ROLES if chance.random() < 0.1)
        cluster.part(chance)
        cluster.happen(chance, bad=bad)
    changed(cluster, rollout={**cluster.body["spec"]["rollout"], "paused": False})
    finish(cluster)
    assert_done(cluster)


@given(clusters(), st.sampled_from(ROLES))
@cases
def test_a_broken_revision_stalls_and_what_can_serve_serves(cluster: RolloutCluster, role: Role) -> None:
    changed(cluster, **{each: {**cluster.body["spec"][each], "replicas": 3} for each in ROLES})
    finish(cluster)
    (old,) = cluster.open()
    changed(cluster, **engine(2000))
    target = transition_of(cluster).state.target
    for _ in range(40):
        cluster.settle_pods(bad=frozenset({(target, role)}))
        cluster.step()
    now = transition_of(cluster)
    assert not cluster.step()
    if now.state.strategy is RolloutStrategy.RECREATE:
        assert cluster.open() == set()
        return
    assert cluster.open() == {old}
    unavailable = Bounds(now.state.max_surge, now.state.max_unavailable).unavailable(3)
    assert all(cluster.ready(old, each) >= 3 - unavailable for each in ROLES)


def one(**pod: Any) -> Small:
    """An object that converged, with one encoder whose pod is given."""
    small = Small(instance(encode={"replicas": 2}))
    small.settle()
    revision = small.renderings[-1].revision
    base = Pod("ns", "p", "p", 1, "v", "encode", revision, False, False, None, small.now.isoformat())
    small.pods = [replace(base, **pod)]
    return small


LATER, EARLIER = timedelta(seconds=30), timedelta(seconds=-1)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        ({"ready": True}, RoleState(2, 2, 0, 2, 0, 2, 2)),
        ({"trouble": Trouble(Reason.STARTING, "")}, RoleState(2, 2, 0, 2, 0, 2, 2)),
        ({"deleting": True, "ends": LATER}, RoleState(2, 2, 0, 2, 1, 2, 2)),
        ({"deleting": True, "ends": EARLIER}, RoleState(2, 2, 0, 2, 0, 2, 2)),
        ({"deleting": True, "ends": LATER, "over": True}, RoleState(2, 2, 0, 2, 0, 2, 2)),
    ],
    ids=["serves", "starts", "goes", "its node is lost", "it has ended"],
)
def test_pods_that_count(pod: dict[str, Any], expected: RoleState) -> None:
    small = one()
    if "ends" in pod:
        pod = {**pod, "ends": (small.now + pod["ends"]).isoformat()}
    small.pods = [replace(small.pods[0], **pod)]
    now = transition_of(small)
    assert now.state.revisions[now.state.target].roles[Role.ENCODE] == expected


@pytest.mark.parametrize(
    ("available", "failure", "reason", "sick"),
    [
        (1, "", Reason.CRASH_LOOPING, 1),
        (1, "", Reason.UNSCHEDULABLE, 1),
        (1, "", Reason.STARTING, 0),
        (2, "", Reason.CRASH_LOOPING, 0),  # the status is older than the pod's: ready ones are never sick
        (1, "exceeded quota", None, 1),
    ],
)
def test_instances_that_do_not_get_ready_by_waiting(
    available: int, failure: str, reason: Reason | None, sick: int
) -> None:
    small = one(trouble=Trouble(reason, "words") if reason else None)
    name = f"v-encode-{small.renderings[-1].revision}"
    child = small.children["Deployment", name]
    assert child.workload is not None
    total = 1 if failure else 2
    child.workload = replace(child.workload, total=total, ready=available, available=available, failure=failure)
    now = transition_of(small)
    state = now.state.revisions[now.state.target].roles[Role.ENCODE]
    assert (state.ready, state.sick) == (available, sick)


def test_a_pod_that_does_not_go_is_looked_at_when_its_grace_period_is_over() -> None:
    small = one()
    changed(small, **engine(2000))
    small.step()
    small.pods = [replace(small.pods[0], deleting=True, ends=(small.now + LATER).isoformat())]
    assert transition_of(small).look_seconds == 31


def test_what_all_revisions_share_turns_with_the_traffic_and_not_back() -> None:
    cluster = RolloutCluster(instance(encode={"replicas": 2}, rollout={}, **engine(1000)))
    finish(cluster)
    (old,) = cluster.open()
    changed(cluster, **engine(2000))
    leads = [transition_of(cluster).lead]
    while transition_of(cluster).rolling:
        cluster.settle_pods()
        cluster.step()
        now = transition_of(cluster)
        leads.append(now.lead)
        if now.state.target in cluster.open():
            assert now.lead == now.state.target
    turned = leads.index(now.state.target)
    assert leads == [old] * turned + [now.state.target] * (len(leads) - turned)
    assert turned > 1


def test_a_change_just_after_the_first_instances_got_ready_takes_no_traffic_away() -> None:
    cluster = RolloutCluster(instance(encode={"replicas": 2}, decode={"replicas": 2}, **engine(1000)))
    while cluster.step():
        pass
    for _, _, pods in cluster.cells():
        pods.fresh, pods.starting = pods.replicas, 0
    cluster.show()
    [old] = cluster.open()
    changed(cluster, **engine(2000))
    cluster.step()
    assert cluster.open() == {old}
    assert all(pods.replicas for name, _, pods in cluster.cells() if name == old)
