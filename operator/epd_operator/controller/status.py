"""The status of an object, from what is there and what was decided. Pure.

Ready means converged: the latest spec is what runs. Available means that some complete revision serves, the latest or
not. Reconciling and Stalled are kstatus' (https://github.com/kubernetes-sigs/cli-utils/tree/master/pkg/kstatus).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from epd_operator.api import names
from epd_operator.api.conditions import ConditionType, Reason
from epd_operator.api.finding import Severity
from epd_operator.api.role import Role
from epd_operator.cluster.resources import Object
from epd_operator.controller.accept import Acceptance
from epd_operator.controller.actions import Problem
from epd_operator.controller.child import Child, Workload
from epd_operator.controller.conditions import Said, conditions
from epd_operator.controller.decide import Decision
from epd_operator.controller.observed import Observed
from epd_operator.controller.pods import worst
from epd_operator.controller.revisions import Target
from epd_operator.plan.rollout import Phase

_LASTING = frozenset({Reason.NAME_TAKEN, Reason.API_REFUSED})


class Report:
    """What can be said of one object."""

    def __init__(
        self, seen: Observed, verdict: Acceptance, target: Target | None, decision: Decision, problem: Problem | None
    ) -> None:
        self.seen = seen
        self.verdict = verdict
        self.target = target
        self.decision = decision
        self.problem = problem or decision.problem
        self.counts = decision.counts or {}
        self.generation = int(seen.body["metadata"].get("generation") or 0)

    def status(self) -> Object:
        """The whole status. Times are those of the status before wherever nothing changed."""
        before = self.seen.status
        status: Object = {
            "observedGeneration": self.generation,
            "conditions": conditions(self._said(), before.get("conditions") or [], self.generation, self.seen.now),
        }
        if self.target is None:
            return status
        facts = self.target.facts
        status |= {
            "topology": facts["topology"],
            "roles": {role: self._role(role) for role in self._roles()},
            "proxy": self._numbers(names.PROXY, None),
            "defaults": {key: value for key, value in facts["defaults"].items() if value is not None},
            "engineVersion": facts["engineVersion"],
            "targetRevision": self.target.revision,
            "url": facts["url"],
        }
        if current := self._current_revision():
            status["currentRevision"] = current
        return status

    # Numbers

    def _roles(self) -> list[str]:
        components = {piece.component for piece in self.target.pieces if piece.revision} if self.target else set()
        return [str(role) for role in Role if role in components]

    def _role(self, role: str) -> Object:
        numbers = self._numbers(role, self.target.revision if self.target else None)
        device = self.target.facts.get("preprocessingDevice") if self.target else None
        return numbers | ({"preprocessingDevice": device} if role == Role.ENCODE and device else {})

    def _numbers(self, component: str, revision: str | None) -> Object:
        """`ready` counts the instances of all revisions, `updated` those of the target."""
        desired = self.counts.get(component, 0)
        everywhere = [child.workload for child in self.seen.workloads(component) if child.workload]
        ready = sum(state.ready for state in everywhere)
        numbers: Object = {"desired": desired, "ready": ready, "summary": f"{ready}/{desired}"}
        if component != names.PROXY:
            latest = [child.workload for child in self.seen.workloads(component, revision) if child.workload]
            numbers["updated"] = sum(state.updated for state in latest)
        return numbers

    def _current_revision(self) -> str:
        """The revision that serves: the target once it is whole, the one before it until then; else the last one."""
        target = self._target_revision()
        if target and not self._behind():
            return target
        serving = [revision for revision in self._revisions() if self._serves(revision)]
        others = sorted(revision for revision in serving if revision != target)
        before = str(self.seen.status.get("currentRevision", ""))
        if before in serving:
            return before
        if others or target in serving:
            return others[0] if others else target
        return before if before in self._revisions() else ""

    def _revisions(self) -> set[str]:
        return {child.revision for role in Role for child in self.seen.workloads(role) if child.revision}

    def _serves(self, revision: str) -> bool:
        """It may get requests, every role of it that has instances to have has a ready one, and something decodes."""
        now = self.decision.transition
        if now is not None and revision not in now.step.serving:
            return False
        for role in Role:
            found = [child.workload for child in self.seen.workloads(role, revision) if child.workload]
            if role == Role.DECODE and not any(state.ready for state in found):
                return False
            if any(state.wanted for state in found) and not any(state.ready for state in found):
                return False
        if self.target is not None and revision == self.target.revision:
            return all(self.seen.workloads(role, revision) for role in self._roles())
        return True

    # Conditions

    def _said(self) -> Iterator[Said]:
        yield self._accepted()
        if self.decision.devices is not None:
            devices = self.decision.devices
            yield Said(ConditionType.DEVICES_AVAILABLE, devices.status, devices.reason, devices.message)
        yield self._available()
        ready = self._ready()
        yield ready
        stalled = self._stalled()
        if stalled is not None:
            yield stalled
        elif ready.status != "True":
            yield Said(ConditionType.RECONCILING, "True", ready.reason, ready.message)

    def _accepted(self) -> Said:
        errors = [str(f) for f in self.verdict.findings if f.severity is Severity.ERROR]
        if errors:
            return Said(ConditionType.ACCEPTED, "False", Reason.INVALID, "\n".join(errors))
        warnings = [str(f) for f in self.verdict.findings]
        message = "\n".join(["the object breaks no rule", *(f"warning: {text}" for text in warnings)])
        return Said(ConditionType.ACCEPTED, "True", Reason.VALID, message)

    def _available(self) -> Said:
        kind = ConditionType.AVAILABLE
        if self._suspended():
            return Said(kind, "False", Reason.SUSPENDED, "spec.suspend is true: there are no instances")
        serving = sorted(revision for revision in self._revisions() if self._serves(revision))
        proxies = [child.workload for child in self.seen.workloads(names.PROXY) if child.workload]
        if not serving:
            return Said(kind, "False", Reason.ROLE_NOT_READY, "no revision has a ready instance of every role")
        if not any(state.ready for state in proxies):
            return Said(kind, "False", Reason.PROXY_NOT_READY, "no proxy is ready")
        current = self._current_revision() or serving[0]
        return Said(kind, "True", Reason.SERVING, f"revision {current} serves")

    def _ready(self) -> Said:
        kind = ConditionType.READY
        if self.verdict.refused:
            return Said(kind, "False", Reason.INVALID, "the object breaks rules: see the condition Accepted")
        if self.problem is not None:
            return Said(kind, "False", self.problem.reason, self.problem.message)
        if self.decision.held:
            message = "preflight is Enforce, and no pod is made until the condition DevicesAvailable is true"
            return Said(kind, "False", Reason.PREFLIGHT_FAILED, message)
        behind = self._behind()
        if not behind and not self._rolling():
            if self._suspended():
                return Said(kind, "True", Reason.SUSPENDED, "spec.suspend is true, and there are no instances")
            return Said(kind, "True", Reason.CONVERGED, "every instance is as the spec asks")
        return self._not_ready(behind)

    def _not_ready(self, behind: list[str]) -> Said:
        kind = ConditionType.READY
        what = "; ".join(behind) or "instances of an older revision are still there"
        trouble = self._trouble()
        if trouble is not None and trouble[0] is not Reason.STARTING:
            return Said(kind, "False", *trouble)
        for child in self._target_workloads():
            if child.workload is not None and child.workload.failure:
                message = f"{child.resource} {child.name}: {child.workload.failure}"
                return Said(kind, "False", Reason.API_REFUSED, message)
        now = self.decision.transition
        if now is not None and now.rolling:
            reason = Reason.PAUSED if now.state.paused else Reason.ROLLING_OUT
            return Said(kind, "False", reason, f"revision {now.state.target} is on its way: {now.step.reason}")
        return Said(kind, "False", trouble[0] if trouble else Reason.PROGRESSING, what)

    def _trouble(self) -> tuple[Reason, str] | None:
        """The most telling trouble of the target's pods and of the proxy's."""
        target = self._target_revision()
        found = worst(pod for pod in self.seen.pods if pod.revision in (target, ""))
        if found is None or self._suspended():
            return None
        pod, trouble, others = found
        more = f" (and {others} more {'pod' if others == 1 else 'pods'})" if others else ""
        return trouble.reason, f"pod {pod.name}: {trouble.words}{more}"

    def _stalled(self) -> Said | None:
        """What does not go on without somebody's doing."""
        kind = ConditionType.STALLED
        if self.verdict.refused:
            return Said(kind, "True", Reason.INVALID, "the object breaks rules: see the condition Accepted")
        if self.problem is not None and not self.problem.passing and self.problem.reason in _LASTING:
            return Said(kind, "True", self.problem.reason, self.problem.message)
        if self.decision.held:
            devices = self.decision.devices
            return Said(kind, "True", Reason.PREFLIGHT_FAILED, devices.message if devices else "")
        late = self._late()
        return Said(kind, "True", Reason.PROGRESS_DEADLINE_EXCEEDED, late) if late else None

    def _late(self) -> str:
        """What has made no progress for too long, while nothing else moves."""
        for child in self.seen.workloads(names.PROXY):
            if child.workload is not None and child.workload.stuck:
                return f"{child.resource} {child.name}: {child.workload.stuck}"
        now = self.decision.transition
        if now is None or now.step.phase is not Phase.STALLED:
            return ""
        current = self._current_revision()
        serves = f"; revision {current} goes on serving" if now.rolling and current and self._serves(current) else ""
        return f"{now.late}; {now.step.reason}{serves}"

    def _behind(self) -> list[str]:
        """What of the target is not as it shall be, in words."""
        target = self._target_revision()
        if not target:
            return ["nothing was accepted yet"]
        parts = [(role, self.seen.workloads(role, target)) for role in self._roles()]
        parts.append((names.PROXY, self.seen.workloads(names.PROXY)))
        return [text for part, found in parts if (text := self._lag(part, found))]

    def _lag(self, part: str, found: list[Child]) -> str:
        wanted = self.counts.get(part, 0)
        states: list[Workload] = [child.workload for child in found if child.workload]
        if not states:
            return f"{part}: its Deployment is not there yet"
        if all(state.done and state.wanted == wanted for state in states):
            return ""
        ready, updated = sum(s.ready for s in states), sum(s.updated for s in states)
        total = sum(s.total for s in states)
        extra = f", {total - wanted} too many" if total > wanted else ""
        return f"{part}: {ready} of {wanted} ready, {updated} up to date{extra}"

    def _target_workloads(self) -> list[Child]:
        target = self._target_revision()
        found = [child for role in self._roles() for child in self.seen.workloads(role, target)]
        return [*found, *self.seen.workloads(names.PROXY)]

    def _target_revision(self) -> str:
        return self.target.revision if self.target is not None else ""

    def _rolling(self) -> bool:
        return self.decision.transition is not None and self.decision.transition.rolling

    def _suspended(self) -> bool:
        return self.seen.body["spec"].get("suspend") is True and not self.verdict.refused


def news(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What a user should hear of as an event: type, reason, note."""
    told = []
    old = {c["type"]: c for c in before.get("conditions") or []}
    new = {c["type"]: c for c in after.get("conditions") or []}
    for kind, bad in ((ConditionType.ACCEPTED, "False"), (ConditionType.STALLED, "True")):
        now, was = new.get(kind), old.get(kind, {})
        fresh = now is not None and (was.get("status"), was.get("message")) != (bad, now["message"])
        if now is not None and now["status"] == bad and fresh and (kind, now["reason"]) != ("Stalled", "Invalid"):
            told.append(("Warning", now["reason"], now["message"]))
    ready, was = new.get(ConditionType.READY, {}), old.get(ConditionType.READY, {})
    if ready.get("status") == "True" and was.get("status") != "True":
        told.append(("Normal", ready["reason"], ready["message"]))
    elif ready.get("reason") in _TROUBLE and ready["reason"] != was.get("reason") and not told:
        told.append(("Warning", ready["reason"], ready["message"]))
    return told


_TROUBLE = frozenset(
    {
        Reason.UNSCHEDULABLE,
        Reason.IMAGE_PULL_FAILED,
        Reason.CONTAINER_CONFIG_ERROR,
        Reason.OUT_OF_MEMORY,
        Reason.CRASH_LOOPING,
        Reason.EVICTED,
        Reason.API_REFUSED,
    }
)
