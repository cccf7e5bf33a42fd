"""What to write, given what is there. Pure: the same observation gives the same decision."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from epd_operator.api import names
from epd_operator.api.conditions import Reason
from epd_operator.api.deployment import API_VERSION, KIND
from epd_operator.api.role import Role
from epd_operator.api.rollout import Preflight
from epd_operator.cluster.api import FIELD_MANAGER
from epd_operator.cluster.ownership import as_wanted
from epd_operator.cluster.resources import CONTROLLER_REVISIONS, SECRETS, Object
from epd_operator.controller.accept import Acceptance
from epd_operator.controller.actions import Action, Apply, Confirm, Create, Keep, MakeSecret, Problem, Remove
from epd_operator.controller.child import Child
from epd_operator.controller.form import Form
from epd_operator.controller.kinds import CHILDREN, ROLE_SCALES
from epd_operator.controller.observed import Observed
from epd_operator.controller.preflight import Verdict, judge
from epd_operator.controller.rendering import SCALED, Content, Piece, controller_revision
from epd_operator.controller.revisions import Target, latest_rendering, revisions_of
from epd_operator.controller.scaling import wanted
from epd_operator.controller.traffic import keeps_traffic
from epd_operator.controller.transition import Transition, transition
from epd_operator.plan.rollout.settings import DEFAULT_HISTORY_LIMIT

SCALE_KIND = ROLE_SCALES.kind
BUDGET_KIND = "PodDisruptionBudget"


@dataclass(frozen=True)
class Decision:
    """What to write, and what the status will say about it."""

    actions: tuple[Action, ...] = ()
    counts: Mapping[str, int] | None = None
    """Instances wanted of each role and of `proxy`; None where nothing was ever accepted."""
    devices: Verdict | None = None
    transition: Transition | None = None
    held: bool = False
    """Preflight keeps workloads from being made: all of them, or those of a new revision."""
    problem: Problem | None = None
    postponed: bool = False
    """Something is left for a calmer moment."""


def decide(seen: Observed, verdict: Acceptance, target: Target | None) -> Decision:
    """Everything that has to be written now, in order. `target`: None where nothing was ever accepted."""
    return Decision() if target is None else _Decider(seen, verdict, target).decide()


class _Decider:
    """One decision."""

    def __init__(self, seen: Observed, verdict: Acceptance, target: Target) -> None:
        self.seen = seen
        self.verdict = verdict
        self._target = target
        self._revisions = revisions_of(seen, target)
        self._rollout: Mapping[str, Any] = self._accepted_spec().get("rollout") or {}
        self._contents: dict[str, Mapping[tuple[str, str], Object]] = {}
        self._problem: Problem | None = None

    def decide(self) -> Decision:
        counts = self._counts()
        devices = judge(self._target.needs, counts, self.seen.facts)
        target = self._revisions[self._target.revision]
        desired = {role: counts.get(role, 0) for role in target.roles}
        held = self.seen.body["spec"].get("preflight") == Preflight.ENFORCE and devices.status != "True"
        # Nothing of the old revision goes for instances that are not made.
        rollout = {**self._rollout, "paused": True} if held else self._rollout
        now = transition(self.seen, self._revisions, desired, rollout)
        actions = (
            *self._renderings(),
            *self._secrets(),
            *self._applied(now, counts, held=held),
            *self._removed(now),
            *self._history(),
        )
        held = held and (now.rolling or not self._workloads_exist())
        return Decision(actions, counts, devices, now, held, self._problem, self._budgets_wait(now))

    def _counts(self) -> dict[str, int]:
        live = self.seen.live(self._target.revision)
        if not self.verdict.refused:
            return wanted(self.seen.body["spec"], self.seen.scales, live)
        # A refused spec changes nothing, not even replicas.
        roles = self.seen.status.get("roles") or {}
        said = {str(role): int((roles.get(role) or {}).get("desired", 1)) for role in Role}
        components = {piece.component for piece in self._target.pieces if piece.kind == "Deployment"}
        return {part: live.get(part, said.get(part, 1)) for part in components}

    def _accepted_spec(self) -> Mapping[str, Any]:
        """The spec as it stands, or the one before it where that is refused."""
        if not self.verdict.refused:
            return self.seen.body["spec"]  # type: ignore[no-any-return]
        return self.verdict.kept.content().spec if self.verdict.kept else {}

    # What is kept

    def _renderings(self) -> Iterator[Action]:
        highest = max((kept.number for kept in self.seen.renderings), default=0)
        if self.verdict.content is not None:
            yield Keep(controller_revision(self.verdict.content, self.seen.body, self._owner(), highest + 1))

    def _history(self) -> Iterator[Action]:
        """Old renderings beyond the limit. What serves and what is asked for always stays."""
        if self.verdict.content is not None or self._problem is not None:
            return  # first the new one
        limit = self._rollout.get("historyLimit", DEFAULT_HISTORY_LIMIT)
        latest = {kept.name for name in self._revisions if (kept := latest_rendering(self.seen, name))}
        asked = self.verdict.kept.name if self.verdict.kept else ""
        old = sorted(
            (kept for kept in self.seen.renderings if kept.name not in {*latest, asked}),
            key=lambda kept: kept.number,
            reverse=True,
        )
        last = {kept.spec_digest: kept.number for kept in sorted(self.seen.renderings, key=lambda kept: kept.number)}
        again = [kept for kept in old if kept.number < last[kept.spec_digest]]
        for kept in (*again, *[kept for kept in old if kept not in again][limit:]):
            yield Remove(CONTROLLER_REVISIONS, kept.namespace, kept.name, kept.uid)

    # What is applied

    def _shown(self, now: Transition) -> list[tuple[Piece, str]]:
        """The pieces that shall exist, each with the revision whose rendering it is from; Deployments last."""
        lead = self._revisions[now.lead]
        shown = [(piece, lead.name) for piece in lead.pieces or self._target.pieces if not piece.revision]
        for name, revision in self._revisions.items():
            if name not in now.step.deletable:
                shown += [(piece, name) for piece in revision.pieces or () if piece.revision]
        return sorted(shown, key=lambda pair: pair[0].kind == "Deployment")

    def _applied(self, now: Transition, counts: Mapping[str, int], *, held: bool) -> Iterator[Action]:
        for piece, revision in self._shown(now):
            if piece.kind == SCALE_KIND:
                yield from self._scale_object(piece, revision)
                continue
            child = self.seen.children.get(piece.key)
            form = self._form(piece, revision, child, now, counts)
            if child is None and self._is_to_come(piece, form, held=held):
                continue
            if child is not None and (stranger := self._stranger(child)):
                self._problem = self._problem or stranger
                continue
            yield from self._repaired(piece, revision, child, form)

    def _form(
        self, piece: Piece, revision: str, child: Child | None, now: Transition, counts: Mapping[str, int]
    ) -> Form:
        if piece.revision and piece.kind == "Deployment":
            role = Role(piece.component)
            latest = revision == self._target.revision
            workload = child.workload if child is not None else None
            return Form(
                replicas=now.step.replicas[revision].get(role, 0),
                desired=counts.get(role) if latest else workload.desired if workload else None,
                begins=self._rollout.get("paused") is True and (workload is None or not workload.begun),
            )
        if piece.revision and keeps_traffic(piece.kind, piece.component):
            return Form(traffic=now.traffic[revision])
        return Form(counts.get(piece.component) if piece.kind in SCALED else None)

    def _is_to_come(self, piece: Piece, form: Form, *, held: bool) -> bool:
        """Whether what is not there is not made yet.

        A Deployment has no instances yet, or no more. A PodDisruptionBudget protects who serves, and so has to wait for
        the first instance: where a role never gets ready it would only hold up drains. It also waits while many objects
        begin: the disruption controller compares each change of a pod with every budget of the namespace.
        """
        if piece.kind == BUDGET_KIND:
            return not (self.seen.calm and self._serves(piece))
        return piece.kind == "Deployment" and (held or (form.replicas == 0 and form.desired != 0))

    def _budgets_wait(self, now: Transition) -> bool:
        """Whether a calmer moment is all that a budget waits for."""
        return not self.seen.calm and any(
            piece.kind == BUDGET_KIND and piece.key not in self.seen.children and self._serves(piece)
            for piece, _ in self._shown(now)
        )

    def _serves(self, piece: Piece) -> bool:
        """Whether the workload of a budget has an instance that is ready."""
        child = self.seen.children.get(("Deployment", piece.name))
        return child is not None and child.workload is not None and child.workload.ready > 0

    def _repaired(self, piece: Piece, revision: str, child: Child | None, form: Form) -> Iterator[Action]:
        scaled = child is None or child.workload is None or form.replicas in (None, child.workload.wanted)
        engines = piece.kind == "Deployment" and piece.revision is not None
        first = replace(form, first=engines)
        if child is None:
            form = first if self._is_first() else form
        elif scaled:  # as it was first made it stays until something has to be written
            for each in dict.fromkeys((form, first)):
                digest = each.digest(piece.digest)
                if child.right_as == digest:
                    return
                live = child.body
                if live is not None and as_wanted(live, self._wanted(piece, revision, child, each), FIELD_MANAGER):
                    yield Confirm(child, digest)
                    return
        wanted = self._wanted(piece, revision, child, form)
        yield Apply(CHILDREN[piece.kind], wanted, form.digest(piece.digest), child)

    def _wanted(self, piece: Piece, revision: str, child: Child | None, form: Form) -> Object:
        return self._finished(self._content(revision)[piece.key], form, child)

    def _is_first(self) -> bool:
        """Whether the target is the first revision that was ever accepted, as far as is known."""
        return {kept.revision for kept in self.seen.renderings} <= {self._target.revision}

    def _finished(self, body: Object, form: Form, child: Child | None) -> Object:
        """The rendered object with owner and form. A role that the spec lacks keeps the replicas it has."""
        done = {**body, "metadata": {**body["metadata"], "ownerReferences": [self._owner()]}}
        if body["kind"] in SCALED and form.replicas is None:
            form = Form(child.workload.wanted if child is not None and child.workload else 1)
        return form.on(done)

    def _scale_object(self, piece: Piece, revision: str) -> Iterator[Action]:
        """Seeded with the current count, then never written again."""
        if piece.component in self.seen.scales:
            return
        seed = max(1, self.seen.live(self._target.revision).get(piece.component, 1))
        yield Create(ROLE_SCALES, self._finished(self._content(revision)[piece.key], Form(seed), None))

    def _content(self, revision: str) -> Mapping[tuple[str, str], Object]:
        if revision not in self._contents:
            content: Content | None = None
            if revision == self._target.revision:
                content = self.verdict.content or (self.verdict.kept.content() if self.verdict.kept else None)
            else:
                kept = latest_rendering(self.seen, revision)
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
        """Both keys before all else, and whenever pods cannot start: users' Secrets are never read or listed."""
        begun = any(self.seen.owns(child) for child in self.seen.children.values())
        if begun and not self._secrets_missed():
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

    def _removed(self, now: Transition) -> Iterator[Action]:
        """What no rendering that is in force has any more, workloads last of all."""
        shown = {piece.key for piece, _ in self._shown(now)}
        target = {piece.key for piece in self._target.pieces}
        for child in sorted(self.seen.children.values(), key=lambda child: child.workload is not None):
            if child.key in shown or child.key in target or child.deleting or not self.seen.owns(child):
                continue
            old = child.revision is not None and child.revision != self._target.revision
            if (old and self._goes(child, now)) or (not old and now.lead == self._target.revision):
                yield Remove(child.resource, child.namespace, child.name, child.uid)
        wanted_scales = {piece.component for piece, _ in self._shown(now) if piece.kind == SCALE_KIND}
        for role, scale in self.seen.scales.items():
            if role not in wanted_scales and not scale.deleting and scale.owner_uid == self.seen.uid:
                yield Remove(ROLE_SCALES, scale.namespace, scale.name, scale.uid)

    def _goes(self, child: Child, now: Transition) -> bool:
        """Of an old revision: nothing is left of it; or it shall change and somebody deleted the rendering for that."""
        name, component = str(child.revision), child.labels.get(names.LABEL_COMPONENT, "")
        if name in now.step.deletable:
            return True
        if self._revisions[name].pieces is not None:
            return False
        if child.workload is not None:
            return now.step.replicas[name].get(Role(component), 0) < child.workload.wanted
        return keeps_traffic(child.resource.kind, component) and not now.traffic[name].open
