"""Why a pod does not serve, in the words of the scheduler and the kubelet. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from epd_operator.api import names
from epd_operator.api.conditions import Reason
from epd_operator.cluster.informer import version_of
from epd_operator.cluster.resources import Object

_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"})
_CONFIG = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PreStartHookError"})
_SEVERITY = (
    Reason.UNSCHEDULABLE,
    Reason.IMAGE_PULL_FAILED,
    Reason.CONTAINER_CONFIG_ERROR,
    Reason.OUT_OF_MEMORY,
    Reason.CRASH_LOOPING,
    Reason.EVICTED,
    Reason.STARTING,
)
"""Most telling first."""
_MAX_WORDS = 1000
_ERROR = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Exit)(?:: .*|$)")
"""The last line of a Python traceback, also behind a logger's prefix."""
_WRAPPER = "See root cause above"
"""What vLLM's server says of an engine that did not start (vllm/v1/engine/utils.py, 0.28 and later)."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a pod does not serve."""

    reason: Reason
    words: str


@dataclass(frozen=True, slots=True)
class Pod:
    """What is kept of a pod."""

    namespace: str
    name: str
    uid: str
    version: int
    instance: str
    component: str
    revision: str
    ready: bool
    deleting: bool
    trouble: Trouble | None
    """None while it serves, or is being deleted."""
    since: str = ""
    """Since when it is ready or not ready, RFC 3339."""
    ends: str = ""
    """When its grace period is over; empty where it is not being deleted."""
    over: bool = False
    """Its containers have ended for good: it holds no device, and another is made in its place."""

    def same_news(self, other: "Pod") -> bool:
        """Whether nothing changed that a user would hear of."""
        return (self.uid, self.ready, self.deleting, self.over, self.trouble) == (
            other.uid,
            other.ready,
            other.deleting,
            other.over,
            other.trouble,
        )


def keep_pod(body: Object) -> Pod:
    """The record of a pod."""
    metadata, status = body["metadata"], body.get("status") or {}
    labels = metadata.get("labels") or {}
    readiness: Mapping[str, Any] = next((c for c in status.get("conditions") or [] if c["type"] == "Ready"), {})
    ready = readiness.get("status") == "True"
    deleting = "deletionTimestamp" in metadata
    return Pod(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        version=version_of(body),
        instance=labels.get(names.LABEL_INSTANCE, ""),
        component=labels.get(names.LABEL_COMPONENT, ""),
        revision=labels.get(names.LABEL_REVISION, ""),
        ready=ready,
        deleting=deleting,
        trouble=None if ready or deleting else trouble_of(body),
        since=readiness.get("lastTransitionTime") or metadata.get("creationTimestamp", ""),
        ends=metadata.get("deletionTimestamp", ""),
        over=status.get("phase") in ("Succeeded", "Failed"),
    )


def trouble_of(body: Object) -> Trouble:
    """Why a pod that is not ready is not."""
    status = body.get("status") or {}
    found = list(_troubles(status))
    if found:
        return min(found, key=lambda trouble: _SEVERITY.index(trouble.reason))
    return Trouble(Reason.STARTING, _starting(status))


def worst(pods: Iterable[Pod]) -> tuple[Pod, Trouble, int] | None:
    """The most telling trouble among pods, whose it is, and how many others have one too."""
    troubled = sorted(
        ((_SEVERITY.index(pod.trouble.reason), pod.name, pod, pod.trouble) for pod in pods if pod.trouble is not None),
        key=lambda item: item[:2],
    )
    if not troubled:
        return None
    _, _, pod, trouble = troubled[0]
    return pod, trouble, len(troubled) - 1


def _troubles(status: Mapping[str, Any]) -> Iterator[Trouble]:
    for condition in status.get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            yield Trouble(Reason.UNSCHEDULABLE, _words(condition.get("message") or condition.get("reason")))
    if status.get("phase") == "Failed":
        yield Trouble(Reason.EVICTED, _words(status.get("message") or status.get("reason") or "the pod failed"))
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(field) or []:
            yield from _of_container(container)


def _of_container(container: Mapping[str, Any]) -> Iterator[Trouble]:
    name = container["name"]
    state = container.get("state") or {}
    waiting = state.get("waiting") or {}
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    if reason in _IMAGE:
        yield Trouble(Reason.IMAGE_PULL_FAILED, _words(f"container {name}: {reason}: {message or container['image']}"))
    elif reason in _CONFIG:
        yield Trouble(Reason.CONTAINER_CONFIG_ERROR, _words(f"container {name}: {reason}: {message}"))
    # A back-off shows for an instant only: what lasts are the restarts and how the container ended
    # (kubelet 1.37, CrashLoopBackOff).
    end = state.get("terminated") or (container.get("lastState") or {}).get("terminated") or {}
    if not end or end.get("exitCode") == 0 or container.get("ready"):
        return
    restarts = container.get("restartCount") or 0
    text = f"container {name}: {end.get('reason', 'Error')}, exit code {end.get('exitCode')}, {restarts} restarts"
    said = _cause((end.get("message") or "").strip())
    kind = Reason.OUT_OF_MEMORY if end.get("reason") == "OOMKilled" else Reason.CRASH_LOOPING
    yield Trouble(kind, _words(f"{text}: {said}" if said else text))


def _cause(said: str) -> str:
    """Of a program's last words the error that ended it, with what follows: some errors have several lines.

    Of vLLM's processes the engine's error comes before that of the server which waited for it. The kubelet hands on
    2048 bytes at most, and the server's traceback alone can be longer (0.32, measured).
    """
    lines = said.splitlines()
    errors = [(number, match[0]) for number, line in enumerate(lines) if (match := _ERROR.search(line))]
    if not errors:
        return said
    engine = [error for number, error in errors if lines[number].startswith("(EngineCore")]
    if engine:
        return engine[-1]
    number, error = errors[-1]
    if _WRAPPER in error:
        return f"{error} (it is in the log: kubectl logs --previous, of this pod)"
    return "\n".join((error, *lines[number + 1 :]))


def _starting(status: Mapping[str, Any]) -> str:
    for container in status.get("containerStatuses") or []:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting:
            detail = f": {waiting['message']}" if waiting.get("message") else ""
            return _words(f"container {container['name']}: {waiting.get('reason', 'Waiting')}{detail}")
        if not container.get("ready"):
            return f"container {container['name']} runs and is not ready yet"
    return "it is not started yet"


def _words(text: str | None) -> str:
    """Others' words on one line, the end kept: tracebacks tell what happened there."""
    line = " ".join((text or "").split())
    return line if len(line) <= _MAX_WORDS else "..." + line[-_MAX_WORDS + 3 :]
