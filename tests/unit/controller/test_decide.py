"""What is written, given what is there: everything once, nothing twice, and never a revision with a role missing."""

import copy
from dataclasses import replace

import pytest

from epd_operator.api.conditions import Reason
from epd_operator.api.names import pruner_name
from epd_operator.controller.actions import Keep
from epd_operator.controller.child import keep_child
from epd_operator.controller.kinds import CHILDREN
from epd_operator.controller.preflight import ClusterFacts
from epd_operator.controller.scaling import keep_scale
from epd_operator.engine.drain import ROUTING
from tests.unit.controller.seen import LONGER, Small, changed, instance, revision, settled


def test_everything_is_made_once_in_an_order_that_starts_no_pod_too_early() -> None:
    small = Small(instance())
    written = small.step()
    assert len(written) == len(set(written))
    assert written[:3] == ["keep 1", "secret v-uuid-key", "secret v-engine-key"]
    first = next(index for index, text in enumerate(written) if text.startswith("apply Deployment"))
    assert all(text.startswith("apply Deployment") for text in written[first:])
    assert small.step() == []
    small.make_ready()
    assert {text.split()[1] for text in small.step()} == {"PodDisruptionBudget"}
    assert small.step() == []


def test_a_budget_waits_for_the_first_instance_of_its_own_workload_and_then_stays() -> None:
    small = Small(instance())
    small.step()
    small.make_ready(["decode"])
    [name] = [name for name in small.names("Deployment") if "decode" in name]
    assert small.step() == [f"apply PodDisruptionBudget {name}"]
    fallen = small.children["Deployment", name]
    assert fallen.workload is not None
    fallen.workload = replace(fallen.workload, ready=0)
    assert small.step() == []
    assert small.names("PodDisruptionBudget") == [name]


def test_budgets_wait_while_others_begin() -> None:
    small = Small(instance())
    small.calm = False
    small.step()
    assert not small.decide().postponed
    small.make_ready(["decode"])
    assert small.step() == []
    assert small.decide().postponed
    small.calm = True
    assert [text.split()[1] for text in small.step()] == ["PodDisruptionBudget"]
    assert not small.decide().postponed


def waits(small: Small) -> dict[str, int]:
    """For how long instances have to be ready, by Deployment of a role."""
    return {
        name: body["spec"].get("minReadySeconds", 0)
        for (kind, name), body in small.bodies.items()
        if kind == "Deployment" and (kind, name) in small.children and name != "v-proxy"
    }


def test_the_first_instances_of_an_object_follow_nobody_and_so_do_not_wait() -> None:
    small = settled()
    encode, decode = (f"v-{role}-{revision(small)}" for role in ("encode", "decode"))
    assert waits(small) == {encode: 0, decode: 0}
    restarted(small)
    assert small.step() == []
    assert waits(small) == {encode: 0, decode: 0}
    changed(small, encode={"replicas": 1, "env": [{"name": "A", "value": "1"}]})
    small.settle()
    assert waits(small) == {encode: ROUTING, decode: 0}  # there instances replace others
    restarted(small)
    assert small.step() == []
    changed(small, **LONGER)
    small.step()
    new = revision(small)
    small.settle()
    assert waits(small) == {f"v-{role}-{new}": ROUTING for role in ("encode", "decode")}


def test_a_try_that_was_cut_off_does_not_make_the_secrets_again() -> None:
    small = Small(instance())
    for action in small.decide().actions[:4]:  # the rendering, both Secrets, and one child
        small.do(action)
    assert [text for text in small.step() if "secret" in text] == []


def restarted(small: Small) -> None:
    """A new process has seen nothing to be right yet."""
    for key, child in list(small.children.items()):
        workload = child.workload
        small.children[key] = keep_child(CHILDREN[key[0]], small.bodies[key], None)
        small.children[key].workload = workload


def test_a_restart_writes_nothing() -> None:
    small = settled()
    restarted(small)
    assert small.step() == []
    assert all(child.right_as for child in small.children.values())


@pytest.mark.parametrize("kind", sorted(set(CHILDREN) - {"CronJob"}))
def test_what_was_edited_or_deleted_is_applied_again(kind: str) -> None:
    small = settled()
    name = small.names(kind)[0]
    body = copy.deepcopy(small.bodies[kind, name])
    body["metadata"]["labels"]["app.kubernetes.io/name"] = "other"
    workload = small.children[kind, name].workload
    small.children[kind, name] = keep_child(CHILDREN[kind], body, None)
    small.children[kind, name].workload = workload
    assert small.step() == [f"apply {kind} {name}"]
    del small.children[kind, name]
    assert small.step() == [f"apply {kind} {name}"]


def test_replicas_change_one_deployment_and_keep_the_rendering() -> None:
    small = settled()
    changed(small, encode={"replicas": 5})
    assert small.step() == [f"apply Deployment v-encode-{revision(small)}"]
    assert small.replicas()[f"v-encode-{revision(small)}"] == 5
    assert len(small.renderings) == 1


def test_suspend_and_resume() -> None:
    small = settled()
    before = small.replicas()
    changed(small, suspend=True)
    small.settle()
    assert set(small.replicas().values()) == {0}
    assert not [text for text in small.log if text.startswith(("remove", "keep"))]
    changed(small, suspend=False)
    small.settle()
    assert small.replicas() == before


def test_a_refused_change_changes_nothing_and_repairs_what_was_accepted() -> None:
    small = settled(encode={"replicas": 3})
    changed(small, encode={"replicas": 1, "parallelism": {"tensor": 2}, "preprocessing": {"tensorIPC": "torch_shm"}})
    assert small.step() == []
    name = f"v-encode-{revision(small)}"
    del small.children["Deployment", name]
    small.body["status"] = {"roles": {"encode": {"desired": 3}}}
    assert small.step() == [f"apply Deployment {name}"]
    assert small.replicas()[name] == 3


def test_a_rollback_keeps_the_old_rendering_anew_and_its_names() -> None:
    small = settled()
    old, names = revision(small), small.names("Deployment")
    for spec in (LONGER, {"engine": {"version": "0.33.0"}}):
        changed(small, **spec)
        small.settle()
    assert (revision(small), small.names("Deployment")) == (old, names)
    assert sorted(kept.number for kept in small.renderings) == [2, 3]


def test_a_rollback_that_was_cut_off_leaves_no_rendering_twice() -> None:
    small = settled()
    for spec in (LONGER, {"engine": {"version": "0.33.0"}}):
        changed(small, **spec)
        small.settle()
    changed(small, **LONGER)
    keep = next(action for action in small.decide().actions if isinstance(action, Keep))
    assert small.do(keep) == "keep 4"
    changed(small, engine={"version": "0.33.0"})
    small.settle()
    assert sorted(kept.number for kept in small.renderings) == [4, 5]


def test_history_is_limited() -> None:
    small = settled(rollout={"historyLimit": 1})
    for length in range(1000, 5000, 1000):
        args = [f"--max-model-len={length}"]
        changed(small, engine={"version": "0.33.0", "args": args})
        small.settle()
    assert sorted(kept.number for kept in small.renderings) == [4, 5]


def test_scaling_is_seeded_with_what_is_there_and_then_followed() -> None:
    small = settled(encode={"replicas": 3})
    changed(small, encode={"scaling": {"mode": "External"}})
    small.settle()
    assert small.scales["encode"].replicas == 3
    name = f"v-encode-{revision(small)}"
    assert small.replicas()[name] == 3
    scale = small.scales["encode"]
    small.scales["encode"] = keep_scale(
        {
            "metadata": {"name": scale.name, "namespace": "ns", "uid": scale.uid, "generation": 2},
            "spec": {"deployment": "v", "role": "encode", "replicas": 0},
        }
    )
    assert small.step() == [f"apply Deployment {name}"]
    assert small.replicas()[name] == 0
    small.scales["encode"] = scale
    changed(small, encode={"replicas": 2})
    small.settle()
    assert small.scales == {}


def test_what_is_wanted_no_more_goes() -> None:
    claim = {"persistentVolumeClaim": {"claimName": "c"}}
    embeddings = {"embeddings": {"connector": "ECExampleConnector", "volume": claim}}
    small = settled(transfer=embeddings)
    assert small.names("CronJob") == [pruner_name("v")]
    changed(small, transfer={})
    small.settle()
    assert small.names("CronJob") == []


def test_enforce_holds_workloads_back_and_nothing_that_runs() -> None:
    small = Small(instance(preflight="Enforce"))
    small.facts = ClusterFacts((), {})
    small.settle()
    assert small.names("Deployment") == []
    assert small.decide().held
    small.facts = Small(instance()).facts
    small.settle()
    assert len(small.names("Deployment")) == 3
    small.facts = ClusterFacts((), {})
    assert small.step() == []
    assert not small.decide().held


def test_enforce_holds_a_rollout_where_it_is() -> None:
    small = settled(encode={"replicas": 2}, preflight="Enforce")
    before, facts = small.replicas(), small.facts
    changed(small, **LONGER)
    small.facts = ClusterFacts((), {})
    for _ in range(3):
        small.step()
        small.make_ready()
    assert small.replicas() == before
    assert small.decide().held
    small.facts = facts
    small.settle()
    assert not small.decide().held
    assert small.replicas() == {
        name.replace(small.renderings[0].revision, revision(small)): count for name, count in before.items()
    }


@pytest.mark.parametrize(
    ("kind", "name", "reason", "passing"),
    [
        ("Deployment", "other", Reason.NAME_TAKEN, False),
        ("EPDDeployment", "other", Reason.NAME_TAKEN, False),
        ("EPDDeployment", "v", Reason.WAITING_FOR_DELETION, True),
    ],
)
def test_a_strangers_child_is_left_alone(kind: str, name: str, reason: Reason, passing: bool) -> None:
    small = settled()
    body = copy.deepcopy(small.bodies["Service", "v-proxy"])
    body["metadata"]["ownerReferences"] = [{"kind": kind, "name": name, "uid": "theirs", "controller": True}]
    small.children["Service", "v-proxy"] = keep_child(CHILDREN["Service"], body, None)
    decision = small.decide()
    assert decision.actions == ()
    assert decision.problem is not None
    assert (decision.problem.reason, decision.problem.passing) == (reason, passing)
    assert "Service v-proxy" in decision.problem.message


def test_an_orphan_of_its_own_is_taken_back() -> None:
    small = settled()
    body = copy.deepcopy(small.bodies["Service", "v-proxy"])
    del body["metadata"]["ownerReferences"]
    small.children["Service", "v-proxy"] = keep_child(CHILDREN["Service"], body, None)
    assert small.step() == ["apply Service v-proxy"]


def test_what_is_being_deleted_is_waited_for() -> None:
    small = settled()
    body = copy.deepcopy(small.bodies["Service", "v-proxy"])
    body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    small.children["Service", "v-proxy"] = keep_child(CHILDREN["Service"], body, None)
    decision = small.decide()
    assert decision.actions == ()
    assert decision.problem is not None
    assert decision.problem.passing


def test_an_object_that_was_never_accepted_makes_nothing() -> None:
    small = Small(instance(engine={}))
    assert small.step() == []
    assert small.verdict().refused
