"""What is known of one object and its children at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from epd_operator.api import names
from epd_operator.api.role import Role
from epd_operator.controller.child import Child
from epd_operator.controller.pods import Pod
from epd_operator.controller.preflight import ClusterFacts
from epd_operator.controller.rendering import Rendering
from epd_operator.controller.scaling import Scale

Key = tuple[str, str]


@dataclass(frozen=True)
class Observed:
    """One object, its children, and what was read for it."""

    body: Mapping[str, Any]
    children: Mapping[Key, Child]
    """By kind and name: all that carry the object's name as their instance, whoever owns them."""
    renderings: tuple[Rendering, ...]
    """Kept for this object."""
    scales: Mapping[str, Scale]
    """By role."""
    pods: tuple[Pod, ...]
    facts: ClusterFacts
    now: str
    """RFC 3339."""
    calm: bool = True
    """No object waits to be begun, and none of their Deployments for its controller."""

    @property
    def uid(self) -> str:
        """Identity of the object."""
        return str(self.body["metadata"]["uid"])

    @property
    def name(self) -> str:
        """Name of the object."""
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """Namespace of the object."""
        return str(self.body["metadata"]["namespace"])

    @property
    def status(self) -> Mapping[str, Any]:
        """The status as it stands."""
        return self.body.get("status") or {}

    def workloads(self, component: str, revision: str | None = None) -> list[Child]:
        """The Deployments of a role, or of the proxy; of one revision or of all."""
        return [
            child
            for child in self.children.values()
            if child.workload is not None
            and child.labels.get(names.LABEL_COMPONENT) == component
            and self.owns(child)
            and revision in (None, child.revision)
        ]

    def owns(self, child: Child) -> bool:
        """Whether the object is the controlling owner of a child."""
        return child.owner is not None and child.owner.uid == self.uid

    def live(self, target: str) -> dict[str, int]:
        """Instances of each component that were desired last: as the target's Deployments say, else as others do."""
        counts: dict[str, int] = {}
        for component in (*Role, names.PROXY):
            found = self.workloads(component, target) or self.workloads(component)
            states = [child.workload for child in found if child.workload]
            if states:
                counts[str(component)] = max(each.wanted if each.desired is None else each.desired for each in states)
        return counts

    def seconds_since(self, moment: str) -> float:
        """Seconds from a moment, RFC 3339, until now; negative where it is to come."""
        return (datetime.fromisoformat(self.now) - datetime.fromisoformat(moment)).total_seconds()
