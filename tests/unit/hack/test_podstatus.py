import pytest

from hack.cluster.kubectl import Object
from hack.cluster.testkubelet.fate import Fate, FateKind, Step
from hack.cluster.testkubelet.podstatus import Progress, status

POD: Object = {
    "metadata": {"name": "p", "namespace": "ns", "uid": "u", "generation": 3},
    "spec": {
        "initContainers": [
            {"name": "init", "image": "i"},
            {"name": "side", "image": "i", "restartPolicy": "Always"},
        ],
        "containers": [{"name": "engine", "image": "e", "startupProbe": {}}, {"name": "other", "image": "o"}],
    },
}


def after(*steps: Step, fate: Fate | None = None) -> Progress:
    progress = Progress(started_at="t0", ip="10.0.0.1")
    for number, step in enumerate(steps, 1):
        progress.enter(step, fate or Fate(), f"t{number}")
    return progress


def conditions(found: Object) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in found["conditions"]}


def engine(found: Object) -> Object:
    return dict(found["containerStatuses"][0])


STATES = [
    (FateKind.RUN, [Step.STARTED, Step.READY], "Running", True, {"running": {"startedAt": "t1"}}),
    (FateKind.UNREADY, [Step.STARTED], "Running", False, {"running": {"startedAt": "t1"}}),
    (FateKind.CREATING, [Step.CREATING], "Pending", False, {"waiting": {"reason": "ContainerCreating"}}),
    (
        FateKind.OOM,
        [Step.STARTED, Step.CRASHED],
        "Running",
        False,
        {"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": "t1", "finishedAt": "t2"}},
    ),
    (
        FateKind.COMPLETE,
        [Step.STARTED, Step.COMPLETED],
        "Succeeded",
        False,
        {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": "t1", "finishedAt": "t2"}},
    ),
]


@pytest.mark.parametrize(("kind", "steps", "phase", "ready", "state"), STATES, ids=[case[0] for case in STATES])
def test_a_step_shows_in_phase_readiness_and_state(
    kind: FateKind, steps: list[Step], phase: str, ready: bool, state: Object
) -> None:
    found = status(POD, after(*steps, fate=Fate(kind)))
    assert found["phase"] == phase
    assert conditions(found)["Ready"] == conditions(found)["ContainersReady"] == str(ready)
    assert (engine(found)["ready"], engine(found)["state"]) == (ready, state)


def test_an_eviction_is_told_in_words() -> None:
    found = status(POD, after(Step.STARTED, Step.READY, Step.EVICTED, fate=Fate(FateKind.EVICT)))
    assert (found["phase"], found["reason"], conditions(found)["Ready"]) == ("Failed", "Evicted", "False")


def test_only_the_container_in_question_fails() -> None:
    found = status(POD, after(Step.PULL_FAILED, fate=Fate(FateKind.IMAGE, container="other")))
    first, second = found["containerStatuses"]
    assert "running" in first["state"]
    assert second["state"]["waiting"]["reason"] == "ErrImagePull"
    message = "containers with unready status: [other]"
    assert [each["message"] for each in found["conditions"] if each["type"] == "Ready"] == [message]


def test_restarts_and_the_last_end_are_kept() -> None:
    crash = Fate(FateKind.CRASH, message="boom")
    progress = after(Step.STARTED, Step.CRASHED, Step.CRASH_BACK_OFF, Step.STARTED, fate=crash)
    found = engine(status(POD, progress))
    assert found["restartCount"] == 1
    assert found["lastState"]["terminated"]["message"] == "boom"
    progress.enter(Step.READY, Fate(), "t9")
    assert engine(status(POD, progress))["restartCount"] == 1


def test_a_container_with_a_startup_probe_is_started_when_it_is_ready() -> None:
    progress = after(Step.STARTED)
    assert engine(status(POD, progress))["started"] is False
    progress.enter(Step.READY, Fate(), "t2")
    assert engine(status(POD, progress))["started"] is True


def test_a_condition_keeps_its_time_while_it_stays_the_same() -> None:
    progress = after(Step.STARTED)
    status(POD, progress)
    progress.enter(Step.READY, Fate(), "t2")
    times = {each["type"]: each["lastTransitionTime"] for each in status(POD, progress)["conditions"]}
    assert times == {"PodReadyToStartContainers": "t1", "Initialized": "t1", "ContainersReady": "t2", "Ready": "t2"}


def test_init_containers_end_and_sidecars_run() -> None:
    init, side = status(POD, after(Step.STARTED))["initContainerStatuses"]
    assert init["state"]["terminated"]["exitCode"] == 0
    assert "running" in side["state"]
