"""What to write, given what is there. Pure: the same observation gives the same decision."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from epd_operator.api import names
from epd_operator.api.conditions import Reason
from epd_operator.api.deployment import API_VERSION, KIND
from epd_operator.api.role import Role
from epd_operator.api.rollout import Preflight, RolloutStrategy
from epd_operator.cluster.api import FIELD_MANAGER
from epd_operator.cluster.ownership import as_wanted
from epd_operator.cluster.resources import CONTROLLER_REVISIONS, SECRETS, Object
from epd_operator.controller.accept import Acceptance
from epd_operator.controller.actions import Action, Apply, Confirm, Create, Keep, MakeSecret, Problem, Remove
from epd_operator.controller.child import Child
from epd_operator.controller.kinds import CHILDREN, ROLE_SCALES
from epd_operator.controller.observed import Observed
from epd_operator.controller.preflight import Need, Verdict, judge
from epd_operator.controller.rendering import SCALED, Content, Piece, Rendering, controller_revision
from epd_operator.controller.scaling import wanted
from epd_operator.controller.stage import RevisionSet, Stage, stage

DEFAULT_HISTORY = 10
SCALE_KIND = ROLE_SCALES.kind


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


@dataclass(frozen=True)
class Decision:
    """What to write, and what the status will say about it."""

    actions: tuple[Action, ...] = ()
    counts: Mapping[str, int] | None = None
    """Instances wanted of each role and of `proxy`; None where nothing was ever accepted."""
    devices: Verdict | None = None
    stage: Stage | None = None
    held: bool = False
    """Preflight keeps the workloads from being made."""
    problem: Problem | None = None


def decide(seen: Observed, verdict: Acceptance, target: Target | None) -> Decision:
    """Everything that has to be written now, in order. `target`: None where nothing was ever accepted."""
    return Decision() if target is None else _Decider(seen, verdict, target).decide()


class _Decider:
    """One decision."""

    def __init__(self, seen: Observed, verdict: Acceptance, target: Target) -> None:
        self.seen = seen
        self.verdict = verdict
        self._target = target
        self._contents: dict[str, Mapping[tuple[str, str], Object]] = {}
        self._problem: Problem | None = None

    def decide(self) -> Decision:
        counts = self._counts()
        devices = judge(self._target.needs, counts, self.seen.facts)
        now = self._stage(counts)
        spec = self.seen.body["spec"]
        held = spec.get("preflight") == Preflight.ENFORCE and devices.status != "True"
        actions = (
            *self._renderings(),
            *(() if held else self._secrets()),
            *self._applied(self._shown(now), counts, held=held),
            *self._removed(now),
            *self._history(now),
        )
        return Decision(actions, counts, devices, now, held and not self._workloads_exist(), self._problem)

    def _counts(self) -> dict[str, int]:
        live = self.seen.live()
        if not self.verdict.refused:
            return wanted(self.seen.body["spec"], self.seen.scales, live)
        # A refused spec changes nothing, not even replicas.
        roles = self.seen.status.get("roles") or {}
        said = {str(role): int((roles.get(role) or {}).get("desired", 1)) for role in Role}
        components = {piece.component for piece in self._target.pieces if piece.kind == "Deployment"}
        return {part: live.get(part, said.get(part, 1)) for part in components}

    def _stage(self, counts: Mapping[str, int]) -> Stage:
        sets = {revision: self._set(revision, counts) for revision in self._revisions()}
        rollout = self.seen.body["spec"].get("rollout") or {}
        strategy = rollout.get("strategy")
        return stage(
            self._target.revision,
            sets,
            RolloutStrategy(strategy) if strategy in list(RolloutStrategy) else None,
            paused=rollout.get("paused") is True,
        )

    def _revisions(self) -> set[str]:
        """The revisions that have workloads."""
        found = (child for role in Role for child in self.seen.workloads(role))
        return {child.revision for child in found if child.revision}

    def _set(self, revision: str, counts: Mapping[str, int]) -> RevisionSet:
        kept = self._rendering(revision)
        number = kept.number if kept else 0
        roles = self._roles(revision)
        workloads = {str(role): self.seen.workloads(role, revision) for role in roles}
        states = [child.workload for found in workloads.values() for child in found if child.workload]
        complete = all(workloads.values()) and bool(roles)
        asked = {role: counts.get(role, 1) for role in workloads}
        return RevisionSet(
            serves=complete and all(state.ready > 0 or state.wanted == 0 for state in states),
            done=complete and all(state.done for state in states) and self._scaled(workloads, asked),
            number=number,
        )

    @staticmethod
    def _scaled(workloads: Mapping[str, list[Child]], asked: Mapping[str, int]) -> bool:
        return all(
            child.workload is not None and child.workload.wanted == asked[role]
            for role, found in workloads.items()
            for child in found
        )

    def _roles(self, revision: str) -> set[str]:
        """The roles that a revision consists of."""
        if revision == self._target.revision:
            pieces = self._target.pieces
        else:
            kept = self._rendering(revision)
            if kept is None:
                return {str(role) for role in Role if self.seen.workloads(role, revision)}
            pieces = kept.pieces
        return {piece.component for piece in pieces if piece.kind == "Deployment" and piece.revision}

    def _rendering(self, revision: str) -> Rendering | None:
        """The latest kept rendering of a revision."""
        found = [kept for kept in self.seen.renderings if kept.revision == revision]
        return max(found, key=lambda kept: kept.number, default=None)

    # What is kept

    def _renderings(self) -> Iterator[Action]:
        highest = max((kept.number for kept in self.seen.renderings), default=0)
        if self.verdict.content is not None:
            yield Keep(controller_revision(self.verdict.content, self.seen.body, self._owner(), highest + 1))

    def _history(self, now: Stage) -> Iterator[Action]:
        """Old renderings beyond the limit. What serves and what is asked for always stays."""
        if self.verdict.content is not None or self._problem is not None:
            return  # first the new one
        limit = (self.seen.body["spec"].get("rollout") or {}).get("historyLimit")
        limit = DEFAULT_HISTORY if not isinstance(limit, int) else limit
        in_use = {self._target.revision, now.lead, *self._revisions()}
        latest = {kept.name for revision in in_use if (kept := self._rendering(revision))}
        asked = self.verdict.kept.name if self.verdict.kept else ""
        spec = self.verdict.kept.spec_digest if self.verdict.kept else ""
        old = sorted(
            (kept for kept in self.seen.renderings if kept.name not in {*latest, asked}),
            key=lambda kept: kept.number,
            reverse=True,
        )
        again = [kept for kept in old if kept.spec_digest == spec]
        for kept in (*again, *[kept for kept in old if kept not in again][limit:]):
            yield Remove(CONTROLLER_REVISIONS, kept.namespace, kept.name, kept.uid)

    # What is applied

    def _shown(self, now: Stage) -> list[tuple[Piece, str]]:
        """The pieces that shall exist, each with the revision whose rendering it is from."""
        target = self._target.revision
        own = [(piece, target) for piece in self._target.pieces if piece.revision]
        lead = self._rendering(now.lead) if now.lead != target else None
        shared = lead.pieces if lead else self._target.pieces
        common = [(piece, now.lead if lead else target) for piece in shared if not piece.revision]
        old = []
        for revision in sorted(self._revisions() - {target}):
            kept = self._rendering(revision)
            if kept is not None and not now.remove_old:
                old += [(piece, revision) for piece in kept.pieces if piece.revision]
        own = own if now.make_target else [pair for pair in own if pair[0].kind != "Deployment"]
        services = [pair for pair in (*common, *own, *old) if pair[0].kind != "Deployment"]
        return services + [pair for pair in (*common, *own, *old) if pair[0].kind == "Deployment"]

    def _applied(self, shown: list[tuple[Piece, str]], counts: Mapping[str, int], *, held: bool) -> Iterator[Action]:
        for piece, revision in shown:
            if piece.kind == SCALE_KIND:
                yield from self._scale_object(piece, revision)
                continue
            child = self.seen.children.get(piece.key)
            if held and child is None and piece.kind == "Deployment":
                continue
            if child is not None and (stranger := self._stranger(child)):
                self._problem = self._problem or stranger
                continue
            replicas = counts.get(piece.component) if piece.kind in SCALED else None
            yield from self._repaired(piece, revision, child, replicas)

    def _repaired(self, piece: Piece, revision: str, child: Child | None, replicas: int | None) -> Iterator[Action]:
        scaled = child is None or child.workload is None or replicas in (None, child.workload.wanted)
        if child is not None and child.right_as == piece.digest and scaled:
            return
        body = self._finished(self._content(revision)[piece.key], replicas, child)
        if child is not None and scaled and child.body is not None and as_wanted(child.body, body, FIELD_MANAGER):
            yield Confirm(child, piece.digest)
        else:
            yield Apply(CHILDREN[piece.kind], body, piece.digest, child)

    def _finished(self, body: Object, replicas: int | None, child: Child | None) -> Object:
        """The rendered object with owner and replicas. A role that the spec lacks keeps the replicas it has."""
        done = {**body, "metadata": {**body["metadata"], "ownerReferences": [self._owner()]}}
        if body["kind"] in SCALED:
            if replicas is None:
                replicas = child.workload.wanted if child is not None and child.workload else 1
            done["spec"] = {**body["spec"], "replicas": replicas}
        return done

    def _scale_object(self, piece: Piece, revision: str) -> Iterator[Action]:
        """Seeded with the current count, then never written again."""
        if piece.component in self.seen.scales:
            return
        seed = max(1, self.seen.live().get(piece.component, 1))
        yield Create(ROLE_SCALES, self._finished(self._content(revision)[piece.key], seed, None))

    def _content(self, revision: str) -> Mapping[tuple[str, str], Object]:
        if revision not in self._contents:
            content: Content | None = None
            if revision == self._target.revision:
                content = self.verdict.content or (self.verdict.kept.content() if self.verdict.kept else None)
            else:
                kept = self._rendering(revision)
                content = kept.content() if kept else None
            objects = content.objects if content else ()
            self._contents[revision] = {(body["kind"], body["metadata"]["name"]): body for body in objects}
        return self._contents[revision]

    def _owner(self) -> Object:
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": self.seen.name,
            "uid": self.seen.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def _stranger(self, child: Child) -> Problem | None:
        """Why a child of the right name may not be touched."""
        if child.deleting:
            return Problem(Reason.WAITING_FOR_DELETION, f"{child.resource} {child.name} is being deleted", passing=True)
        if child.owner is None or child.owner.uid == self.seen.uid:
            return None
        if (child.owner.kind, child.owner.name) == (KIND, self.seen.name):
            message = f"{child.resource} {child.name} belongs to a deleted object of the same name, and goes with it"
            return Problem(Reason.WAITING_FOR_DELETION, message, passing=True)
        message = f"{child.resource} {child.name} exists and belongs to {child.owner.kind} {child.owner.name}"
        return Problem(Reason.NAME_TAKEN, message)

    # What is made once, and what goes

    def _secrets(self) -> Iterator[Action]:
        """Both keys before the first pod, and whenever pods cannot start: users' Secrets are never read or listed."""
        if self._workloads_exist() and not self._secrets_missed():
            return
        labels = {
            names.LABEL_NAME: "epd",
            names.LABEL_INSTANCE: self.seen.name,
            names.LABEL_MANAGED_BY: "epd-operator",
        }
        for name in (names.uuid_key_secret(self.seen.name), names.engine_key_secret(self.seen.name)):
            metadata = {
                "name": name,
                "namespace": self.seen.namespace,
                "labels": labels,
                "ownerReferences": [self._owner()],
            }
            kind = {"apiVersion": SECRETS.api_version, "kind": SECRETS.kind}
            yield MakeSecret({**kind, "metadata": metadata, "type": "Opaque"})

    def _secrets_missed(self) -> bool:
        own = (names.uuid_key_secret(self.seen.name), names.engine_key_secret(self.seen.name))
        words = [pod.trouble.words for pod in self.seen.pods if pod.trouble is not None]
        return any(name in text for text in words for name in own)

    def _workloads_exist(self) -> bool:
        return any(child.workload is not None and self.seen.owns(child) for child in self.seen.children.values())

    def _removed(self, now: Stage) -> Iterator[Action]:
        """What no rendering that is in force has any more, workloads last of all."""
        shown = {piece.key for piece, _ in self._shown(now)}
        target = {piece.key for piece in self._target.pieces}
        for child in sorted(self.seen.children.values(), key=lambda child: child.workload is not None):
            if child.key in shown or child.key in target or child.deleting or not self.seen.owns(child):
                continue
            old = child.revision is not None and child.revision != self._target.revision
            if (old and now.remove_old) or (not old and now.lead == self._target.revision):
                yield Remove(child.resource, child.namespace, child.name, child.uid)
        wanted_scales = {piece.component for piece, _ in self._shown(now) if piece.kind == SCALE_KIND}
        for role, scale in self.seen.scales.items():
            if role not in wanted_scales and not scale.deleting and scale.owner_uid == self.seen.uid:
                yield Remove(ROLE_SCALES, scale.namespace, scale.name, scale.uid)
