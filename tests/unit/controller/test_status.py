"""What the status says: kstatus' rules, numbers, revisions, and the words of what is wrong."""

import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from epd_operator.api.conditions import ConditionType, Reason
from epd_operator.api.status import Status
from epd_operator.controller.actions import Problem
from epd_operator.controller.child import Workload
from epd_operator.controller.decide import decide
from epd_operator.controller.pods import Pod, Trouble
from epd_operator.controller.preflight import ClusterFacts
from epd_operator.controller.status import Report, news
from tests.unit.controller.seen import Small, instance

LONGER = {"engine": {"version": "0.33.0", "args": ["--max-model-len=4096"]}}


def report(small: Small, problem: Problem | None = None) -> dict[str, Any]:
    verdict = small.verdict()
    target = small.target(verdict)
    decision = decide(small.observed(), verdict, target)
    status = Report(small.observed(), verdict, target, decision, problem).status()
    Status.model_validate(status)  # of the shape that the CRD has
    return status


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}


def settled(**spec: Any) -> Small:
    small = Small(instance(**spec))
    small.settle()
    small.make_ready()
    small.body["status"] = report(small)
    return small


def changed(small: Small, **spec: Any) -> None:
    small.body = copy.deepcopy(small.body)
    small.body["spec"] |= spec
    small.body["metadata"]["generation"] += 1


def trouble(name: str, reason: Reason, words: str, revision: str) -> Pod:
    return Pod("ns", name, name, 1, "v", "encode", revision, False, False, Trouble(reason, words))


def test_all_is_well() -> None:
    status = report(settled())
    assert conditions(status) == {
        "Accepted": ("True", "Valid"),
        "DevicesAvailable": ("True", "NodesOfferDevices"),
        "Available": ("True", "Serving"),
        "Ready": ("True", "Converged"),
    }
    assert status["observedGeneration"] == 1
    assert status["topology"] == "E+PD"
    assert status["roles"]["decode"] == {"desired": 2, "ready": 2, "updated": 2, "summary": "2/2"}
    assert status["roles"]["encode"]["preprocessingDevice"] == "cuda"
    assert status["proxy"] == {"desired": 2, "ready": 2, "summary": "2/2"}
    assert status["currentRevision"] == status["targetRevision"]
    assert status["url"] == "http://v-proxy.ns.svc:8000"


def test_it_starts() -> None:
    small = Small(instance())
    small.step()
    found = conditions(report(small))
    assert found["Available"] == ("False", "RoleNotReady")
    assert found["Ready"] == ("False", "Progressing")
    assert found["Reconciling"] == ("True", "Progressing")
    small.make_ready(["encode", "decode"])
    assert conditions(report(small))["Available"] == ("False", "ProxyNotReady")


def test_the_most_telling_pod_is_told() -> None:
    small = settled()
    small.make_ready()
    name = small.names("Deployment")[1]
    small.children["Deployment", name].workload = Workload(1, True, 1, 1, 0, 0)
    revision = small.renderings[-1].revision
    small.pods = [
        trouble("a", Reason.STARTING, "x", revision),
        trouble("b", Reason.OUT_OF_MEMORY, "container engine: OOMKilled", revision),
        trouble("c", Reason.UNSCHEDULABLE, "of a revision that goes", "other"),
    ]
    status = report(small)
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert (ready["reason"], ready["message"]) == (
        "OutOfMemory",
        "pod b: container engine: OOMKilled (and 1 more pod)",
    )


def test_a_rollout_serves_all_the_time() -> None:
    small = settled()
    old = small.renderings[-1].revision
    changed(small, **LONGER)
    small.step()
    status = report(small)
    assert conditions(status)["Available"] == ("True", "Serving")
    assert conditions(status)["Ready"] == ("False", "RollingOut")
    assert status["currentRevision"] == old != status["targetRevision"]
    assert status["roles"]["decode"]["summary"] == "2/2"
    assert status["roles"]["decode"]["updated"] == 0
    small.settle()
    assert report(small)["currentRevision"] == status["targetRevision"]


def test_a_deadline_that_passed_stalls_and_the_old_revision_serves() -> None:
    small = settled(encode={"replicas": 2})
    old = small.renderings[-1].revision
    changed(small, **LONGER)
    small.step()
    small.make_ready()
    small.step()
    new = small.renderings[-1].revision
    child = small.children["Deployment", f"v-decode-{new}"]
    child.workload = replace(child.workload, stuck="ReplicaSet has timed out") if child.workload else None
    small.make_ready(["encode"])
    small.step()
    status = report(small)
    assert conditions(status)["Stalled"] == ("True", "ProgressDeadlineExceeded")
    assert "Reconciling" not in conditions(status)
    assert conditions(status)["Available"] == ("True", "Serving")
    message = next(c["message"] for c in status["conditions"] if c["type"] == "Stalled")
    assert message == (
        f"Deployment v-decode-{new}: ReplicaSet has timed out; waits for 1 decode of {new} to get ready; "
        f"revision {old} goes on serving"
    )


def test_a_pod_that_does_not_get_ready_in_time_stalls() -> None:
    """A Deployment that was complete once does not watch its progress."""
    small = settled(encode={"replicas": 1, "startupTimeoutSeconds": 60}, rollout={"progressDeadlineSeconds": 100})
    latest = small.renderings[-1].revision
    name = f"v-encode-{latest}"
    child = small.children["Deployment", name]
    child.workload = replace(child.workload, ready=0, available=0) if child.workload else None
    pod = trouble("p", Reason.STARTING, "container engine runs and is not ready yet", latest)
    small.pods = [replace(pod, since=small.now.isoformat())]
    assert "Stalled" not in conditions(report(small))
    now = small.decide().transition
    assert now is not None
    assert now.look_seconds == 100
    small.now += timedelta(seconds=100)
    stalled = next(c for c in report(small)["conditions"] if c["type"] == "Stalled")
    assert stalled["message"].startswith("pod p is not ready after 100 s; waits for 1 encode of")
    small.pods = []
    small.make_ready()
    assert "Stalled" not in conditions(report(small))


def test_a_paused_rollout_says_so() -> None:
    small = settled()
    changed(small, rollout={"paused": True}, **LONGER)
    small.step()
    small.step()
    found = conditions(report(small))
    assert found["Ready"] == ("False", "Paused")
    assert found["Available"] == ("True", "Serving")


def test_what_quota_refuses_is_told() -> None:
    small = Small(instance())
    small.step()
    name = small.names("Deployment")[0]
    small.children["Deployment", name].workload = Workload(2, True, 0, 0, 0, 0, failure="exceeded quota: few")
    ready = next(c for c in report(small)["conditions"] if c["type"] == "Ready")
    assert (ready["reason"], ready["message"]) == ("APIRefused", f"Deployment {name}: exceeded quota: few")


def test_an_invalid_object_is_stalled_and_what_served_serves() -> None:
    small = settled()
    changed(small, encode={"parallelism": {"tensor": 2}, "preprocessing": {"tensorIPC": "torch_shm"}})
    found = conditions(report(small))
    assert found["Accepted"] == ("False", "Invalid")
    assert found["Stalled"] == ("True", "Invalid")
    assert found["Available"] == ("True", "Serving")
    assert found["Ready"] == ("False", "Invalid")


def test_one_that_was_never_accepted_says_no_more() -> None:
    status = report(Small(instance(engine={})))
    assert set(status) == {"observedGeneration", "conditions"}
    assert conditions(status)["Available"] == ("False", "RoleNotReady")


def test_suspended_is_ready_and_not_available() -> None:
    small = settled()
    changed(small, suspend=True)
    small.settle()
    found = conditions(report(small))
    assert (found["Ready"], found["Available"]) == (("True", "Suspended"), ("False", "Suspended"))


def test_held_by_preflight() -> None:
    small = Small(instance(preflight="Enforce"))
    small.facts = ClusterFacts((), {})
    small.settle()
    found = conditions(report(small))
    assert found["Stalled"] == ("True", "PreflightFailed")
    assert found["Ready"] == ("False", "PreflightFailed")


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (Problem(Reason.NAME_TAKEN, "Service v-proxy exists"), "Stalled"),
        (Problem(Reason.API_REFUSED, "quota"), "Stalled"),
        (Problem(Reason.WAITING_FOR_DELETION, "goes", passing=True), "Reconciling"),
    ],
)
def test_what_stood_in_the_way(problem: Problem, kind: str) -> None:
    status = report(settled(), problem)
    assert conditions(status)[kind] == ("True", str(problem.reason))
    assert conditions(status)["Ready"] == ("False", str(problem.reason))


def test_the_same_world_gives_the_same_status() -> None:
    small = settled()
    assert report(small) == small.body["status"]


def status_of(**said: tuple[str, str, str]) -> dict[str, Any]:
    found = [{"type": kind, "status": s, "reason": r, "message": m} for kind, (s, r, m) in said.items()]
    return {"conditions": found}


WELL = status_of(Accepted=("True", "Valid", ""), Ready=("True", "Converged", "all"))
NEWS = [
    ("becomes ready", {}, WELL, [("Normal", "Converged", "all")]),
    ("stays ready", WELL, WELL, []),
    ("starts", {}, status_of(Ready=("False", "Starting", "x")), []),
    ("crashes", WELL, status_of(Ready=("False", "CrashLooping", "x")), [("Warning", "CrashLooping", "x")]),
    (
        "crashes on",
        status_of(Ready=("False", "CrashLooping", "x")),
        status_of(Ready=("False", "CrashLooping", "y")),
        [],
    ),
    (
        "invalid",
        WELL,
        status_of(Accepted=("False", "Invalid", "e"), Ready=("False", "Invalid", ""), Stalled=("True", "Invalid", "")),
        [("Warning", "Invalid", "e")],
    ),
    ("stalled", WELL, status_of(Stalled=("True", "NameTaken", "n")), [("Warning", "NameTaken", "n")]),
]


@pytest.mark.parametrize(("before", "after", "told"), [pytest.param(*case[1:], id=case[0]) for case in NEWS])
def test_news(before: dict[str, Any], after: dict[str, Any], told: list[tuple[str, str, str]]) -> None:
    assert news(before, after) == told


def test_every_condition_has_a_known_type() -> None:
    assert {c["type"] for c in report(settled())["conditions"]} <= {str(kind) for kind in ConditionType}
