"""What shall happen to a pod, and the steps that lead there. No clock and no client: the pod's task has both."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self

PREFIX = "test-kubelet/"
PULL_SECONDS = 0.5
BACK_OFF_SECONDS = 1.0
BACK_OFF_SHOWN_SECONDS = 0.2


class FateKind(StrEnum):
    """The name is the reason that the kubelet gives, where it gives one."""

    RUN = "Run"
    CREATING = "ContainerCreating"
    """It is never done with its image or volumes."""
    UNREADY = "Unready"
    """It runs, and its readiness probe fails."""
    IMAGE = "ImagePullBackOff"
    CRASH = "CrashLoopBackOff"
    OOM = "OOMKilled"
    """It is killed for its memory, each time anew."""
    EVICT = "Evicted"
    COMPLETE = "Completed"


class Step(StrEnum):
    """Where a pod is, as seen by its containers."""

    NEW = "New"
    CREATING = "Creating"
    NO_CONFIG = "NoConfig"
    """A container cannot be made, for want of a Secret or ConfigMap in its environment."""
    NO_VOLUME = "NoVolume"
    """No container is made, for want of a Secret or ConfigMap in a volume."""
    PULL_FAILED = "PullFailed"
    PULL_BACK_OFF = "PullBackOff"
    STARTED = "Started"
    READY = "Ready"
    CRASHED = "Crashed"
    CRASH_BACK_OFF = "CrashBackOff"
    EVICTED = "Evicted"
    COMPLETED = "Completed"


RUNNING = frozenset({Step.STARTED, Step.READY})
FINAL = frozenset({Step.EVICTED, Step.COMPLETED})


@dataclass(frozen=True)
class Fate:
    """One fate. As pod annotations: `test-kubelet/fate: OOMKilled`, `test-kubelet/ready-after: "2"` and so on."""

    kind: FateKind = FateKind.RUN
    container: str = ""
    """Whose fate it is; the first one's without a name. The others run."""
    message: str = ""
    """Replaces the usual words: a termination message, or what the image registry said."""
    ready_after: float = 0
    """Seconds from the container's start to Ready, or to its crash."""
    end_after: float = 0
    """Seconds from a deletion to the pod's end, at most its grace period."""

    @classmethod
    def of(cls, annotations: Mapping[str, str], otherwise: Self) -> Self:
        """The fate that annotations ask for; what they do not say is as in `otherwise`. Raises ValueError."""

        def text(name: str, default: str) -> str:
            return annotations.get(PREFIX + name, default)

        return replace(
            otherwise,
            kind=FateKind(text("fate", otherwise.kind)),
            container=text("container", otherwise.container),
            message=text("message", otherwise.message),
            ready_after=float(text("ready-after", str(otherwise.ready_after))),
            end_after=float(text("end-after", str(otherwise.end_after))),
        )


def following(step: Step, kind: FateKind) -> Step:
    """The next step on the way to a fate; the same step where the way ends, or goes on for ever."""
    if step in FINAL:
        return step
    match kind:
        case FateKind.RUN:
            return Step.READY if step in RUNNING else Step.STARTED
        case FateKind.UNREADY:
            return Step.STARTED
        case FateKind.CREATING:
            return Step.CREATING
        case FateKind.IMAGE:
            return Step.PULL_BACK_OFF if step in (Step.PULL_FAILED, Step.PULL_BACK_OFF) else Step.PULL_FAILED
        case FateKind.CRASH | FateKind.OOM:
            if step in RUNNING:
                return Step.CRASHED
            return Step.CRASH_BACK_OFF if step is Step.CRASHED else Step.STARTED
        case FateKind.EVICT:
            return Step.EVICTED
        case FateKind.COMPLETE:
            return Step.COMPLETED if step in RUNNING else Step.STARTED


def seconds(step: Step, fate: Fate) -> float:
    """How long a pod stays at a step before the following one; infinite at the end of its way."""
    if following(step, fate.kind) is step:
        return math.inf
    match step:
        case Step.STARTED:
            return fate.ready_after
        case Step.PULL_FAILED if fate.kind is FateKind.IMAGE:
            return PULL_SECONDS
        case Step.CRASHED:
            return BACK_OFF_SECONDS
        case Step.CRASH_BACK_OFF:
            return BACK_OFF_SHOWN_SECONDS
        case _:
            return 0
