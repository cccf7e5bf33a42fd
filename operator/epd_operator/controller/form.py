"""What a decision adds to a rendered object: what changes without another rendering. Pure."""

from dataclasses import dataclass

from epd_operator.api import names
from epd_operator.cluster.resources import Object
from epd_operator.controller.traffic import OPEN, Traffic


@dataclass(frozen=True, slots=True)
class Form:
    """Number of instances, and what the operator remembers in the cluster rather than in itself."""

    replicas: int | None = None
    desired: int | None = None
    """Of a role's Deployment: what its revision carries as a whole, kept beside replicas."""
    traffic: Traffic = OPEN
    begins: bool = False
    """Of a Deployment: it may not be paused yet, since one that is paused from the start never has a pod."""
    first: bool = False
    """Of a Deployment: as it was made for the object's first revision. Its instances replace nobody, so nothing waits
    until they are available (minReadySeconds), which would be four writes of statuses more."""

    def digest(self, rendered: str) -> str:
        """Of the rendered object in this form; replicas do not count, they are compared themselves."""
        desired = [] if self.desired is None else [f"desired={self.desired}"]
        traffic = [] if self.traffic.open else [f"ended={self.traffic.ended}"]
        flags = [name for name in ("begins", "first") if getattr(self, name)]
        return " ".join([rendered, *desired, *traffic, *flags])

    def on(self, body: Object) -> Object:
        """A rendered object in this form."""
        body = self.traffic.on(body)
        if self.replicas is not None:
            body = {**body, "spec": {**body["spec"], "replicas": self.replicas}}
        without = {"paused"} if self.begins else set()
        without |= {"minReadySeconds"} if self.first else set()
        if without:
            body = {**body, "spec": {key: value for key, value in body["spec"].items() if key not in without}}
        if self.desired is not None:
            annotations = {**body["metadata"].get("annotations", {}), names.ANNOTATION_DESIRED: str(self.desired)}
            body = {**body, "metadata": {**body["metadata"], "annotations": annotations}}
        return body
