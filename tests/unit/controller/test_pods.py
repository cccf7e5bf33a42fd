"""Why a pod does not serve, in words."""

from typing import Any

import pytest

from epd_operator.api.conditions import Reason
from epd_operator.controller.pods import keep_pod, worst


def pod(name: str = "p", conditions: list[dict[str, str]] | None = None, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": "3"},
        "status": {"conditions": conditions or [], **status},
    }


def container(**fields: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "engine", "image": "i:1", "ready": False, **fields}]}


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return container(state={"waiting": {"reason": reason, "message": message}})


def ended(reason: str, code: int, **more: Any) -> dict[str, Any]:
    return {"terminated": {"reason": reason, "exitCode": code, **more}}


CASES: list[tuple[str, dict[str, Any], Reason, str]] = [
    (
        "unschedulable",
        pod(conditions=[{"type": "PodScheduled", "status": "False", "message": "0/1 nodes: Insufficient gpu"}]),
        Reason.UNSCHEDULABLE,
        "0/1 nodes: Insufficient gpu",
    ),
    (
        "image",
        pod(**waiting("ImagePullBackOff", "Back-off pulling image")),
        Reason.IMAGE_PULL_FAILED,
        "container engine: ImagePullBackOff: Back-off pulling image",
    ),
    (
        "secret",
        pod(**waiting("CreateContainerConfigError", 'secret "s" not found')),
        Reason.CONTAINER_CONFIG_ERROR,
        'container engine: CreateContainerConfigError: secret "s" not found',
    ),
    (
        "crash, seen between two starts",
        pod(**container(restartCount=2, state=ended("Error", 1, message="Traceback\n  ValueError: x"))),
        Reason.CRASH_LOOPING,
        "container engine: Error, exit code 1, 2 restarts: ValueError: x",
    ),
    (
        "crash, seen while it runs again",
        pod(**container(restartCount=3, state={"running": {}}, lastState=ended("Error", 1))),
        Reason.CRASH_LOOPING,
        "container engine: Error, exit code 1, 3 restarts",
    ),
    (
        "crash, told by engine and server",
        pod(
            **container(
                restartCount=1,
                state=ended(
                    "Error",
                    1,
                    message="(EngineCore pid=88) ERROR 11-29 [core.py:1510] ValueError: 0.0 GiB KV cache\n"
                    "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.\n"
                    "resource_tracker: UserWarning: leaked",
                ),
            )
        ),
        Reason.CRASH_LOOPING,
        "container engine: Error, exit code 1, 1 restarts: ValueError: 0.0 GiB KV cache",
    ),
    (
        "crash, told by the server alone",
        pod(**container(restartCount=1, state=ended("Error", 1, message="x\nRuntimeError: See root cause above. {}"))),
        Reason.CRASH_LOOPING,
        (
            "container engine: Error, exit code 1, 1 restarts: RuntimeError: See root cause above. {} "
            "(it is in the log: kubectl logs --previous, of this pod)"
        ),
    ),
    (
        "crash with an error of two lines",
        pod(**container(state=ended("Error", 1, message="  File\np.ValidationError: 1 error\n  Value error, no such"))),
        Reason.CRASH_LOOPING,
        "container engine: Error, exit code 1, 0 restarts: p.ValidationError: 1 error Value error, no such",
    ),
    (
        "crash in a shell's words",
        pod(**container(restartCount=0, state=ended("Error", 1, message="cp: error writing '/e': No space left"))),
        Reason.CRASH_LOOPING,
        "container engine: Error, exit code 1, 0 restarts: cp: error writing '/e': No space left",
    ),
    (
        "memory",
        pod(**container(restartCount=1, state=waiting("CrashLoopBackOff"), lastState=ended("OOMKilled", 137))),
        Reason.OUT_OF_MEMORY,
        "container engine: OOMKilled, exit code 137, 1 restarts",
    ),
    (
        "init container",
        pod(
            initContainerStatuses=[{"name": "fetch", "ready": False, "restartCount": 1, "state": ended("Error", 2)}],
            **waiting("PodInitializing"),
        ),
        Reason.CRASH_LOOPING,
        "container fetch: Error, exit code 2, 1 restarts",
    ),
    ("evicted", pod(phase="Failed", reason="Evicted", message="low on memory"), Reason.EVICTED, "low on memory"),
    ("creating", pod(**waiting("ContainerCreating")), Reason.STARTING, "container engine: ContainerCreating"),
    (
        "loading",
        pod(**container(state={"running": {}})),
        Reason.STARTING,
        "container engine runs and is not ready yet",
    ),
    ("new", pod(), Reason.STARTING, "it is not started yet"),
]


@pytest.mark.parametrize(("body", "reason", "words"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_trouble(body: dict[str, Any], reason: Reason, words: str) -> None:
    trouble = keep_pod(body).trouble
    assert trouble is not None
    assert (trouble.reason, trouble.words) == (reason, words)


def test_a_pod_that_serves_or_goes_has_none() -> None:
    ready = pod(conditions=[{"type": "Ready", "status": "True"}], **container(restartCount=9))
    assert keep_pod(ready).trouble is None
    going = pod(**waiting("ImagePullBackOff"))
    going["metadata"]["deletionTimestamp"] = "now"
    assert keep_pod(going).trouble is None


def test_the_most_telling_trouble_is_told() -> None:
    bodies = [pod("a"), pod("b", **waiting("ErrImagePull")), pod("c", **waiting("ErrImagePull"))]
    found = worst(keep_pod(body) for body in bodies)
    assert found is not None
    assert (found[0].name, found[1].reason, found[2]) == ("b", Reason.IMAGE_PULL_FAILED, 2)
    assert worst([]) is None


def test_long_words_keep_their_end() -> None:
    trouble = keep_pod(pod(**waiting("ErrImagePull", "x" * 5000 + " the cause"))).trouble
    assert trouble is not None
    assert len(trouble.words) == 1000
    assert trouble.words.endswith("the cause")
