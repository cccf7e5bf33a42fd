"""The status of a pod at a step, as a kubelet writes it. Pure."""

from dataclasses import dataclass, field
from hashlib import sha256

from hack.cluster.kubectl import Object
from hack.cluster.testkubelet import words
from hack.cluster.testkubelet.fate import FINAL, RUNNING, Fate, FateKind, Step

CRASHED, KILLED = 1, 137


@dataclass
class Progress:
    """What has happened to a pod so far."""

    started_at: str
    """When the kubelet first saw it, and so on for all times: RFC 3339 in whole seconds."""
    ip: str
    step: Step = Step.NEW
    fate: Fate = field(default_factory=Fate)
    container: str = ""
    """Whose fate it was last; the first one's without a name."""
    since: str = ""
    """When the step began."""
    running_since: str = ""
    complaint: str = ""
    """Why it cannot go on, at the steps NO_CONFIG and NO_VOLUME."""
    blocked_container: str = ""
    restarts: int = 0
    last_end: Object | None = None
    """How the container ended before."""
    conditions: dict[str, Object] = field(default_factory=dict)

    def enter(self, step: Step, fate: Fate, now: str) -> None:
        """Go to a step."""
        if step is Step.STARTED and self.step is not Step.READY:
            if self.step in (Step.CRASHED, Step.CRASH_BACK_OFF):
                self.restarts += 1
            self.running_since = now
        if step is Step.CRASHED:
            self.last_end = _end(self, fate, now)
        self.step, self.fate, self.since = step, fate, now
        self.container = fate.container or self.container


def subject(pod: Object, progress: Progress) -> str:
    """The container that the fate is about."""
    names = [container["name"] for container in pod["spec"]["containers"]]
    return progress.container if progress.container in names else str(names[0])


def status(pod: Object, progress: Progress) -> Object:
    """The whole status, but for the conditions that others own. Updates the times of the conditions in `progress`."""
    step = progress.step
    containers = [_container(pod, container, progress) for container in pod["spec"]["containers"]]
    created = step not in (Step.NEW, Step.CREATING, Step.NO_VOLUME)
    unready = [container["name"] for container in containers if not container["ready"]]
    addresses = {"podIP": progress.ip, "podIPs": [{"ip": progress.ip}]} if created else {}
    evicted = {"reason": "Evicted", "message": progress.fate.message or words.EVICTED} if step is Step.EVICTED else {}
    return {
        "phase": _phase(step, containers),
        **evicted,
        "observedGeneration": pod["metadata"].get("generation", 0),
        "startTime": progress.started_at,
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        **addresses,
        "conditions": _conditions(progress, created=created, unready=unready),
        "initContainerStatuses": [
            _init_container(container, progress, created) for container in pod["spec"].get("initContainers") or []
        ],
        "containerStatuses": containers,
    }


def _phase(step: Step, containers: list[Object]) -> str:
    if step in FINAL:
        return "Succeeded" if step is Step.COMPLETED else "Failed"
    never_ran = all("waiting" in container["state"] and not container["restartCount"] for container in containers)
    return "Pending" if never_ran else "Running"


def _conditions(progress: Progress, *, created: bool, unready: list[str]) -> list[Object]:
    over = progress.step in FINAL
    wanted: list[Object] = [
        {"type": "PodReadyToStartContainers", "status": str(created and not over)},
        {"type": "Initialized", "status": str(created)},
        *(
            words.unready(name, unready) if unready else {"type": name, "status": "True"}
            for name in ("ContainersReady", "Ready")
        ),
    ]
    for condition in wanted:
        before = progress.conditions.get(condition["type"], {})
        same = before.get("status") == condition["status"]
        condition["lastTransitionTime"] = before["lastTransitionTime"] if same else progress.since
        # A patch merges conditions by type: what is not said would stay.
        condition.setdefault("reason", None)
        condition.setdefault("message", None)
        progress.conditions[condition["type"]] = condition
    return wanted


def _container(pod: Object, container: Object, progress: Progress) -> Object:
    name, step = container["name"], progress.step
    about_it = name == subject(pod, progress)
    state = _state(pod, container, progress) if about_it or step in _SHARED else _running(progress)
    if step is Step.NO_CONFIG:
        blocked = name == progress.blocked_container
        state = _waiting("CreateContainerConfigError", progress.complaint) if blocked else _running(progress)
    running = "running" in state
    crashed = about_it and progress.last_end is not None
    return {
        **_identity(container, created=running or "terminated" in state),
        "ready": running and (step is not Step.STARTED or not about_it),
        "started": running and (step is not Step.STARTED or "startupProbe" not in container),
        "restartCount": progress.restarts if about_it else 0,
        "state": state,
        "lastState": {"terminated": progress.last_end} if crashed and step is not Step.CRASHED else {},
    }


_SHARED = frozenset({Step.NEW, Step.CREATING, Step.NO_VOLUME, *FINAL})
"""Steps at which all containers are in the same state."""


def _state(pod: Object, container: Object, progress: Progress) -> Object:
    name, image, message = container["name"], container["image"], progress.fate.message
    match progress.step:
        case Step.PULL_FAILED:
            return _waiting("ErrImagePull", words.pull_error(image, message))
        case Step.PULL_BACK_OFF:
            return _waiting("ImagePullBackOff", words.pull_back_off(image, message))
        case Step.CRASHED:
            return {"terminated": progress.last_end}
        case Step.CRASH_BACK_OFF:
            return _waiting("CrashLoopBackOff", words.restart_back_off(pod, name))
        case Step.COMPLETED | Step.EVICTED:
            return {"terminated": _end(progress, progress.fate, progress.since)}
        case step if step in RUNNING:
            return _running(progress)
        case _:
            return _waiting("ContainerCreating")


def _init_container(container: Object, progress: Progress, created: bool) -> Object:
    sidecar = container.get("restartPolicy") == "Always"
    if not created:
        state = _waiting("PodInitializing")
    elif sidecar:
        state = {"running": {"startedAt": progress.started_at}}
    else:
        times = {"startedAt": progress.started_at, "finishedAt": progress.started_at}
        state = {"terminated": {"exitCode": 0, "reason": "Completed", **times}}
    return {
        **_identity(container, created=created),
        "ready": created,
        "started": created and sidecar,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }


def _identity(container: Object, *, created: bool) -> Object:
    image = container["image"]
    digest = sha256(image.encode()).hexdigest() if created else ""
    name = sha256(f"{container['name']}{image}".encode()).hexdigest()
    return {
        "name": container["name"],
        "image": image,
        "imageID": f"sha256:{digest}" if created else "",
        "containerID": f"containerd://{name}" if created else None,
    }


def _waiting(reason: str, message: str = "") -> Object:
    return {"waiting": {"reason": reason, **({"message": message} if message else {})}}


def _running(progress: Progress) -> Object:
    return {"running": {"startedAt": progress.running_since or progress.since}}


def _end(progress: Progress, fate: Fate, now: str) -> Object:
    times = {"startedAt": progress.running_since or now, "finishedAt": now}
    said = {"message": fate.message} if fate.message else {}
    match fate.kind:
        case FateKind.COMPLETE:
            return {"exitCode": 0, "reason": "Completed", **times, **said}
        case FateKind.OOM:
            return {"exitCode": KILLED, "reason": "OOMKilled", **times, **said}
        case FateKind.EVICT:
            return {"exitCode": KILLED, "reason": "Error", **times}
        case _:
            return {"exitCode": CRASHED, "reason": "Error", **times, **said}
