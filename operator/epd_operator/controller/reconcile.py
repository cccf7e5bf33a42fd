"""One object: observe, decide, execute, report. The same for creation, change, drift, restart and resync."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import structlog

from epd_operator.api import names
from epd_operator.api.conditions import ConditionType
from epd_operator.cluster.api import Cluster
from epd_operator.cluster.errors import ApiError, ClusterError
from epd_operator.cluster.events import event_about
from epd_operator.cluster.resources import EVENTS, PERSISTENT_VOLUME_CLAIMS, PRIORITY_CLASSES, RUNTIME_CLASSES, Object
from epd_operator.controller.accept import Acceptance, accept, render_annotation
from epd_operator.controller.actions import Problem
from epd_operator.controller.conditions import get, merge_patch
from epd_operator.controller.decide import Decision, decide
from epd_operator.controller.execute import Executor
from epd_operator.controller.kinds import EPD_DEPLOYMENTS, ROLE_SCALES
from epd_operator.controller.metrics import ERRORS, FINDINGS, RECONCILES, WRITES
from epd_operator.controller.observed import Observed
from epd_operator.controller.preflight import ClusterFacts, Need, needs_of
from epd_operator.controller.revisions import Target
from epd_operator.controller.scaling import scale_status
from epd_operator.controller.status import Report, news
from epd_operator.controller.world import World
from epd_operator.plan.settings import Settings

Key = tuple[str, str]
FACTS_SECONDS = 30.0
"""How often what the cluster lacks is looked for again."""
WAIT_SECONDS = 1.0
"""Until what is expected to pass is looked at again."""
REFUSED_SECONDS = 30.0
"""Until what the API server refused is tried again."""


@dataclass
class _Memory:
    """What was derived for one generation of an object."""

    uid: str
    generation: int
    asked: str
    latest: str
    verdict: Acceptance
    target: Target | None
    claims: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    facts_at: float | None = None


class Reconciler:
    """Reconciles objects of one operator class."""

    def __init__(
        self,
        cluster: Cluster,
        world: World,
        *,
        settings: Settings,
        operator_class: str | None = None,
        identity: str = "epd-operator",
        executor: Executor | None = None,
        now: Callable[[], str] | None = None,
        calm: Callable[[], bool] = lambda: True,
    ) -> None:
        """`calm`: whether no object waits to be begun, and none of their Deployments for its controller."""
        self._cluster = cluster
        self._world = world
        self._settings = settings
        self._class = operator_class
        self._identity = identity
        self._executor = executor or Executor(cluster, world)
        self._now = now or (lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        self._calm = calm
        self._memories: dict[Key, _Memory] = {}
        self.postponed: set[Key] = set()
        """Objects for which something is left for a calmer moment."""

    async def __call__(self, key: Key) -> float | None:
        """Reconcile one object. Returns when to do it again, in seconds. Raises ClusterError for what passes."""
        started = time.monotonic()
        outcome = "failed"
        try:
            again = await self._reconcile(key)
            outcome = "done"
        except ClusterError as error:
            ERRORS.labels(getattr(error, "reason", "") or type(error).__name__).inc()
            raise
        finally:
            RECONCILES.labels(outcome).observe(time.monotonic() - started)
        return again

    async def _reconcile(self, key: Key) -> float | None:
        body = await self._present(key)
        if body is None:
            self._memories.pop(key, None)
            return None
        log = structlog.get_logger().bind(
            namespace=key[0], name=key[1], generation=body["metadata"].get("generation"), uid=body["metadata"]["uid"]
        )
        memory = self._memory(key, body)
        await self._look_up(key, memory)
        seen = self._observe(key, body, memory)
        decision = decide(seen, memory.verdict, memory.target)
        if decision.postponed:
            self.postponed.add(key)
        wrote, kept, problem = await self._executor.execute(decision.actions, lambda: self._lives(key, memory.uid))
        if kept is not None and memory.target is not None:
            memory.verdict = Acceptance(memory.verdict.findings, kept)
            memory.latest = self._latest(key, memory.uid)
            if problem is None and seen.renderings:  # one of them may be superfluous now
                seen = self._observe(key, body, memory)
                decision = decide(seen, memory.verdict, memory.target)
                _, _, problem = await self._executor.execute(decision.actions, lambda: self._lives(key, memory.uid))
        if problem is not None and problem.ending:
            log.info("the namespace is going", problem=problem.message)
            return REFUSED_SECONDS  # its own end comes as news
        if wrote:
            log.info("applied", actions=len(decision.actions), problem=problem.message if problem else None)
            seen = self._observe(key, body, memory)
        await self._report(seen, memory, decision, problem, log)
        await self._report_scales(seen, memory)
        return self._again(memory, decision, problem)

    async def _present(self, key: Key) -> Mapping[str, Any] | None:
        """The object if it is there, this operator's, and not being deleted."""
        instance = self._world.instance(key)
        doubted = key in self._world.doubted
        self._world.doubted.discard(key)
        if instance is None or instance.body["spec"].get("operatorClass") != self._class:
            return None
        if doubted:
            try:
                body = await self._cluster.get(EPD_DEPLOYMENTS, *key)
            except ApiError as error:
                if not error.is_gone:
                    raise
                self._world.instances.forget(instance.body)
                return None
            self._world.take_instance(body)
            instance = self._world.instance(key) or instance
        return None if "deletionTimestamp" in instance.body["metadata"] else instance.body

    def _lives(self, key: Key, uid: str) -> bool:
        """Whether the object is still there, as far as is known, and not being deleted."""
        instance = self._world.instance(key)
        return instance is not None and instance.uid == uid and "deletionTimestamp" not in instance.body["metadata"]

    def _latest(self, key: Key, uid: str) -> str:
        found = self._world.renderings_of(key, uid)
        return ",".join(sorted(f"{kept.name}:{kept.number}" for kept in found))

    def _memory(self, key: Key, body: Mapping[str, Any]) -> _Memory:
        """What was derived from the object and its kept renderings, derived anew if any of them changed."""
        metadata = body["metadata"]
        uid, generation, asked = metadata["uid"], int(metadata.get("generation") or 0), render_annotation(body)
        latest = self._latest(key, uid)
        known = self._memories.get(key)
        if known and (known.uid, known.generation, known.asked, known.latest) == (uid, generation, asked, latest):
            return known
        verdict = accept(body, self._world.renderings_of(key, uid), self._settings)
        for finding in verdict.findings:
            FINDINGS.labels(finding.rule, str(finding.severity)).inc()
        memory = _Memory(uid, generation, asked, latest, verdict, _target(verdict))
        self._memories[key] = memory
        return memory

    def _observe(self, key: Key, body: Mapping[str, Any], memory: _Memory) -> Observed:
        facts = ClusterFacts(self._world.node_list(), memory.claims, tuple(memory.missing))
        return Observed(
            body=body,
            children=self._world.children_of(key),
            renderings=self._world.renderings_of(key, memory.uid),
            scales=self._world.scales_of(key),
            pods=self._world.pods_of(key),
            facts=facts,
            now=self._now(),
            calm=self._calm(),
        )

    async def _look_up(self, key: Key, memory: _Memory) -> None:
        """Read the claims and classes that the pods name: once, and again now and then while one of them is amiss."""
        if memory.target is None:
            return
        clock = time.monotonic()
        if memory.facts_at is not None and (not self._amiss(memory) or clock < memory.facts_at + FACTS_SECONDS):
            return
        needs = memory.target.needs
        memory.facts_at = clock
        for claim in sorted({claim for need in needs for claim in (*need.claims, *need.readers)}):
            memory.claims[claim] = await self._access_modes(key[0], claim)
        memory.missing = [name for name in _classes(needs) if await self._lacks(name)]

    def _amiss(self, memory: _Memory) -> bool:
        few = any(modes is None or "ReadWriteMany" not in modes for modes in memory.claims.values())
        return few or bool(memory.missing)

    async def _access_modes(self, namespace: str, name: str) -> tuple[str, ...] | None:
        try:
            claim = await self._cluster.get(PERSISTENT_VOLUME_CLAIMS, namespace, name)
        except ApiError as error:
            if error.is_gone:
                return None
            if error.status == 403:  # unknown: say nothing about it
                return ("ReadWriteMany",)
            raise
        return tuple(claim["spec"].get("accessModes") or ())

    async def _lacks(self, kind_and_name: str) -> bool:
        kind, name = kind_and_name.split(" ", 1)
        resource = RUNTIME_CLASSES if kind == RUNTIME_CLASSES.kind else PRIORITY_CLASSES
        try:
            await self._cluster.get(resource, None, name)
        except ApiError as error:
            if error.is_gone:
                return True
            if error.status != 403:
                raise
        return False

    async def _report(
        self, seen: Observed, memory: _Memory, decision: Decision, problem: Problem | None, log: Any
    ) -> None:
        """Write the status if it says something new, then the events."""
        before = seen.status
        status = Report(seen, memory.verdict, memory.target, decision, problem).status()
        patch = merge_patch(before, status)
        if not patch:
            return
        body: Object = {"metadata": {"uid": memory.uid}, "status": patch}
        WRITES.labels(EPD_DEPLOYMENTS.kind, "status").inc()
        try:
            answer = await self._cluster.patch(EPD_DEPLOYMENTS, seen.namespace, seen.name, body, "status")
        except ApiError as error:
            if error.is_gone or error.is_conflict:  # it is gone, perhaps with another in its place: its news will come
                return
            raise
        self._world.take_instance(answer)
        ready = get(status, ConditionType.READY)
        log.info("status", ready=ready.get("status"), reason=ready.get("reason"), message=ready.get("message"))
        for kind, reason, note in news(before, status):
            await self._tell(seen, kind, reason, note, log)

    async def _tell(self, seen: Observed, kind: str, reason: str, note: str, log: Any) -> None:
        event = event_about(
            seen.body,
            kind="Warning" if kind == "Warning" else "Normal",
            reason=reason,
            action="Reconcile",
            note=note,
            instance=self._identity,
        )
        WRITES.labels(EVENTS.kind, "create").inc()
        try:
            await self._cluster.create(EVENTS, event)
        except ApiError as error:  # an event is not worth a second try
            log.warning("event refused", error=str(error))

    async def _report_scales(self, seen: Observed, memory: _Memory) -> None:
        if memory.target is None:
            return
        for role, scale in seen.scales.items():
            count = sum(child.workload.total for child in seen.workloads(role) if child.workload)
            selector = {names.LABEL_INSTANCE: seen.name, names.LABEL_COMPONENT: role}
            status = scale_status(scale, count, selector)
            if status is None:
                continue
            body = {"metadata": {"uid": scale.uid}, "status": status}
            WRITES.labels(ROLE_SCALES.kind, "status").inc()
            try:
                answer = await self._cluster.patch(ROLE_SCALES, scale.namespace, scale.name, body, "status")
            except ApiError as error:
                if error.is_gone or error.is_conflict:
                    continue
                raise
            self._world.take_scale(answer)

    def _again(self, memory: _Memory, decision: Decision, problem: Problem | None) -> float | None:
        trouble = problem or decision.problem
        if trouble is not None:
            ERRORS.labels(str(trouble.reason)).inc()
            return WAIT_SECONDS if trouble.passing else REFUSED_SECONDS
        devices = decision.devices
        waits = [FACTS_SECONDS] if self._amiss(memory) and devices is not None and devices.status != "True" else []
        if decision.transition is not None and decision.transition.look_seconds is not None:
            waits.append(max(decision.transition.look_seconds, WAIT_SECONDS))
        return min(waits, default=None)


def _target(verdict: Acceptance) -> Target | None:
    content = verdict.content or (verdict.kept.content() if verdict.kept else None)
    if content is None:
        return None
    pieces = verdict.kept.pieces if verdict.content is None and verdict.kept else content.pieces()
    return Target(content.facts, pieces, needs_of(content.objects))


def _classes(needs: tuple[Need, ...]) -> list[str]:
    runtime = {f"{RUNTIME_CLASSES.kind} {need.runtime_class}" for need in needs if need.runtime_class}
    priority = {f"{PRIORITY_CLASSES.kind} {need.priority_class}" for need in needs if need.priority_class}
    return sorted(runtime | priority)
