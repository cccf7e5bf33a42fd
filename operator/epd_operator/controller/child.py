"""What is kept in memory of each child: enough to see that it is right, and its content only until it was seen."""

import marshal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from epd_operator.api import names
from epd_operator.cluster.informer import version_of
from epd_operator.cluster.resources import Object, Resource

_CHANGED_BY_CONTROLLERS = ("deployment.kubernetes.io/revision",)


@dataclass(frozen=True, slots=True)
class Owner:
    """The controlling owner of an object."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Workload:
    """How far a Deployment is."""

    wanted: int
    """spec.replicas."""
    current: bool
    """Its controller has seen the latest spec."""
    total: int
    updated: int
    ready: int
    available: int
    stuck: str = ""
    """Why the progress deadline passed, if it did."""
    failure: str = ""
    """Why pods could not be made, if they could not: the words of quota or admission."""
    desired: int | None = None
    """What was desired of the role when its revision was last the target."""
    begun: bool = True
    """Its controller has seen it once, and so made its ReplicaSet, even if it is paused since."""

    @property
    def done(self) -> bool:
        """All wanted pods are there, of the latest template, ready; and no other.

        Ready, not available: that is for those who wait for the next step, not for requests.
        """
        counts = (self.total, self.updated, self.ready)
        return self.current and all(count == self.wanted for count in counts)


@dataclass(slots=True)
class Child:
    """One object that carries the operator's label."""

    resource: Resource
    namespace: str
    name: str
    uid: str
    version: int
    generation: int
    owner: Owner | None
    deleting: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    surface: tuple[Any, ...]
    """What of the metadata is compared, to see that nothing but the status changed."""
    workload: Workload | None
    packed: bytes | None
    """The content, until it was seen to be right: a tenth of the memory that the object itself takes."""
    right_as: str = field(default="")
    """Digest of the rendering that the content was seen to be equal to."""

    @property
    def key(self) -> tuple[str, str]:
        """Kind and name."""
        return self.resource.kind, self.name

    @property
    def body(self) -> Object | None:
        """The content, unless it was seen to be right."""
        return None if self.packed is None else marshal.loads(self.packed)  # noqa: S302  of this process's own making

    @property
    def revision(self) -> str | None:
        """The revision that it belongs to; None if it belongs to all."""
        return self.labels.get(names.LABEL_REVISION)

    @property
    def instance(self) -> str:
        """Name of the EPDDeployment that it is part of."""
        return self.labels.get(names.LABEL_INSTANCE, "")

    def is_right(self, digest: str) -> None:
        """The content is that of the rendering with this digest: it need not be kept."""
        self.right_as = digest
        self.packed = None


def keep_child(resource: Resource, body: Object, before: Child | None) -> Child:
    """The record of a child. A change of its status alone leaves it as right as it was."""
    metadata = body["metadata"]
    annotations = {
        key: value for key, value in (metadata.get("annotations") or {}).items() if key not in _CHANGED_BY_CONTROLLERS
    }
    owners = metadata.get("ownerReferences") or []
    labels = metadata.get("labels") or {}
    generation = int(metadata.get("generation") or 0)
    surface = (generation, labels, annotations, owners)
    right_as = before.right_as if before is not None and generation and before.surface == surface else ""
    return Child(
        resource=resource,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata["uid"],
        version=version_of(body),
        generation=generation,
        owner=_controller(owners),
        deleting="deletionTimestamp" in metadata,
        labels=labels,
        annotations=annotations,
        surface=surface,
        workload=workload_of(body) if resource.kind == "Deployment" else None,
        packed=None if right_as else marshal.dumps(body),
        right_as=right_as,
    )


def _controller(owners: list[Object]) -> Owner | None:
    return next((Owner(ref["kind"], ref["name"], ref["uid"]) for ref in owners if ref.get("controller")), None)


def workload_of(body: Object) -> Workload:
    """How far a Deployment is."""
    status: Mapping[str, Any] = body.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or []}
    desired = (body["metadata"].get("annotations") or {}).get(names.ANNOTATION_DESIRED, "")
    progressing, failure = conditions.get("Progressing", {}), conditions.get("ReplicaFailure", {})
    return Workload(
        wanted=int(body["spec"].get("replicas", 1)),
        current=int(status.get("observedGeneration") or 0) >= int(body["metadata"].get("generation") or 0),
        total=int(status.get("replicas") or 0),
        updated=int(status.get("updatedReplicas") or 0),
        ready=int(status.get("readyReplicas") or 0),
        available=int(status.get("availableReplicas") or 0),
        stuck=progressing.get("message", "") if progressing.get("reason") == "ProgressDeadlineExceeded" else "",
        failure=failure.get("message", "") if failure.get("status") == "True" else "",
        begun=bool(status.get("observedGeneration")),
        desired=int(desired) if desired.isdecimal() else None,
    )
