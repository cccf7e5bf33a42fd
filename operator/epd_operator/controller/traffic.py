"""Whether a revision gets new requests: kept on the Service of its decode role, and nowhere else. Pure.

EndpointSlices take the label over from the Service (Kubernetes' endpointslice controller), and there the proxy reads
it. So who routes and who decides read one object, a restart of either loses nothing, and only changes are written.
"""

from dataclasses import dataclass
from datetime import datetime

from epd_operator.api import names
from epd_operator.api.role import Role
from epd_operator.cluster.resources import SERVICES, Object
from epd_operator.controller.child import Child

KEEPER = Role.DECODE
"""The role whose Service says it: every revision has it."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the Service says."""

    open: bool
    """New requests may go to the revision."""
    ended: str = ""
    """When it ceased to get them, RFC 3339; empty while it gets them, or where it never did."""

    def then(self, *, serves: bool, now: str) -> "Traffic":
        """What it shall say, given whether the revision may serve from now on."""
        if serves:
            return OPEN
        return Traffic(open=False, ended=now) if self.open else self

    def on(self, service: Object) -> Object:
        """A rendered Service that says it."""
        if self.open:
            return service
        metadata = service["metadata"]
        labels = {**metadata["labels"], names.LABEL_TRAFFIC: names.NO_TRAFFIC}
        said = {**metadata, "labels": labels}
        if self.ended:
            said["annotations"] = {**metadata.get("annotations", {}), names.ANNOTATION_TRAFFIC_ENDED: self.ended}
        return {**service, "metadata": said}


OPEN = Traffic(open=True)
NEVER = Traffic(open=False)


def keeps_traffic(kind: str, component: str) -> bool:
    """Whether objects of this kind and component say it."""
    return kind == SERVICES.kind and component == KEEPER


def traffic_of(service: Child) -> Traffic:
    """What a Service says."""
    if service.labels.get(names.LABEL_TRAFFIC) != names.NO_TRAFFIC:
        return OPEN
    ended = service.annotations.get(names.ANNOTATION_TRAFFIC_ENDED, "")
    return Traffic(open=False, ended=ended if _is_moment(ended) else "")


def _is_moment(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
