"""The revisions of an object: the one that is wanted, and every other of which something is left. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from epd_operator.api import names
from epd_operator.api.role import Role
from epd_operator.controller.child import Child
from epd_operator.controller.observed import Observed
from epd_operator.controller.preflight import Need
from epd_operator.controller.rendering import Piece, Rendering
from epd_operator.controller.traffic import NEVER, OPEN, Traffic, keeps_traffic, traffic_of
from epd_operator.engine.drain import DEFAULT_DRAIN
from epd_operator.plan.rollout.settings import DEFAULT_PROGRESS_DEADLINE_SECONDS


@dataclass(frozen=True)
class Target:
    """The rendering that is wanted, with what was derived from it."""

    facts: Mapping[str, Any]
    pieces: tuple[Piece, ...]
    needs: tuple[Need, ...]

    @property
    def revision(self) -> str:
        """Revision of the roles."""
        return str(self.facts["revision"])


@dataclass
class Revision:
    """One revision: its rendering, and what there is of it."""

    name: str
    pieces: tuple[Piece, ...] | None
    """None where its rendering is kept no more: somebody deleted it."""
    facts: Mapping[str, Any]
    number: int
    """Of its rendering: the higher, the later."""
    workloads: dict[Role, Child] = field(default_factory=dict)
    traffic: Traffic = NEVER

    @property
    def roles(self) -> list[Role]:
        """The roles that it consists of, with or without a workload."""
        if self.pieces is None:
            return [role for role in Role if role in self.workloads]
        found = {piece.component for piece in self.pieces if piece.kind == "Deployment" and piece.revision}
        return [role for role in Role if role in found]

    def drain_seconds(self, role: Role) -> int:
        """How long a request may take at a role."""
        return int(self._said(role).get("drainSeconds", DEFAULT_DRAIN[role]))

    def progress_deadline_seconds(self, role: Role) -> int:
        """How long an instance of a role may take to get ready."""
        return int(self._said(role).get("progressDeadlineSeconds", DEFAULT_PROGRESS_DEADLINE_SECONDS))

    def _said(self, role: Role) -> Mapping[str, Any]:
        said: Mapping[str, Any] = (self.facts.get("roles") or {}).get(role) or {}
        return said


def revisions_of(seen: Observed, target: Target) -> dict[str, Revision]:
    """By name, the target first. A target that is made with nothing else there serves from its first instance on."""
    children = [child for child in seen.children.values() if child.revision is not None and seen.owns(child)]
    others = sorted({str(child.revision) for child in children} - {target.revision})
    found = {target.revision: Revision(target.revision, target.pieces, target.facts, 0)}
    for name in others:
        kept = latest_rendering(seen, name)
        number, facts = (kept.number, kept.facts) if kept else (0, {})
        found[name] = Revision(name, kept.pieces if kept else None, facts, number)
    if not others:
        found[target.revision].traffic = OPEN
    for child in children:
        revision, component = found[str(child.revision)], child.labels.get(names.LABEL_COMPONENT, "")
        if child.workload is not None and component in list(Role):
            revision.workloads[Role(component)] = child
        elif keeps_traffic(child.resource.kind, component):
            revision.traffic = traffic_of(child)
    return found


def latest_rendering(seen: Observed, revision: str) -> Rendering | None:
    """The latest kept rendering of a revision."""
    found = [kept for kept in seen.renderings if kept.revision == revision]
    return max(found, key=lambda kept: kept.number, default=None)
