"""N objects of one operator: made at once, left alone, changed one by one, met again after a restart, deleted."""

import asyncio
import shlex
import signal
import subprocess
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.operator.moments import Moments
from benchmarks.operator.phase import Cost, Phase
from benchmarks.operator.subject import Subject
from hack.cluster.audit import AuditLog
from hack.cluster.kubectl import Object
from hack.cluster.rest import Rest

NAMESPACE = "bench"
AT_ONCE = 8
"""Requests of the driver at a time."""


@dataclass
class Measurement:
    """One operator on one control plane."""

    subject: Subject
    rest: Rest
    audit: AuditLog
    count: int
    replicas: int
    idle_seconds: float
    changes: int
    limit: float
    """Seconds that a phase may take."""
    profiler: str = ""
    """A command that runs during the creation; `{pid}` is the operator's."""

    async def run(self) -> dict[str, Cost]:
        """All phases, by name. Raises TimeoutError: the operator did not come so far."""
        await self.rest.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        self._moments = Moments(self.rest, self.subject, NAMESPACE)
        self._names = [f"o-{number:04}" for number in range(self.count)]
        watching = asyncio.create_task(self._moments.run())
        try:
            await self._warm_up()
            costs: dict[str, Cost] = {}
            for name, phase in (
                ("create", self._create),
                ("idle", self._idle),
                ("change", self._change),
                ("restart", self._restart),
                ("delete", self._delete),
            ):
                costs[name] = await phase()
                print(f"  {name}: {costs[name].seconds:.1f} s, {costs[name].cpu_s:.2f} s of CPU", flush=True)
            return costs
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _warm_up(self) -> None:
        """One object comes and goes, so that everyone has learned of the kind."""
        await self._apply("warm-up")
        await self._until_ready(["warm-up"])
        await self._remove("warm-up")
        await self._moments.until("the first object is gone", self._gone, self.limit)

    async def _create(self) -> Cost:
        phase = Phase(self.subject, self.audit)
        profiling = self._profile()
        sent: dict[str, float] = {}

        async def make(name: str) -> None:
            sent[name] = time.monotonic()
            await self._apply(name)

        await _at_once([make(name) for name in self._names])
        await self._until_ready(self._names)
        await phase.quiet()
        if profiling is not None:
            profiling.send_signal(signal.SIGINT)  # as by Ctrl-C, at which profilers write what they have
            profiling.wait()
        cost = await phase.end()
        cost.times["ready"] = quantiles([self._moments.ready[name][1] - sent[name] for name in self._names])
        return cost

    async def _idle(self) -> Cost:
        phase = Phase(self.subject, self.audit)
        await asyncio.sleep(self.idle_seconds)
        return await phase.end()

    async def _change(self) -> Cost:
        phase = Phase(self.subject, self.audit)
        seen, done = [], []
        for number in range(self.changes):
            name = self._names[number * self.count // self.changes]
            body, kind = self.subject.change(str(number + 1))
            began = time.monotonic()
            answer = await self.rest.patch(self._path(name), body, kind)
            generation = answer["metadata"]["generation"]
            await self._moments.until("a child changed", lambda: self._moments.changed[name] > began, self.limit)  # noqa: B023  asked at once
            seen.append(self._moments.changed[name] - began)
            await self._until_ready([name], generation)
            done.append(self._moments.ready[name][1] - began)
        await phase.quiet()
        cost = await phase.end()
        cost.times |= {"first write": quantiles(seen), "ready": quantiles(done)}
        return cost

    async def _restart(self) -> Cost:
        self.subject.stop()
        phase = Phase(self.subject, self.audit, fresh=True)
        await asyncio.to_thread(self.subject.start)
        await phase.quiet()
        return await phase.end()

    async def _delete(self) -> Cost:
        phase = Phase(self.subject, self.audit)
        await _at_once([self._remove(name) for name in self._names])
        await self._moments.until("all are gone", self._gone, self.limit)
        await phase.quiet()
        return await phase.end()

    def _profile(self) -> subprocess.Popen[bytes] | None:
        if not self.profiler:
            return None
        return subprocess.Popen(shlex.split(self.profiler.format(pid=self.subject.pid)))

    def _gone(self) -> bool:
        return not self._moments.objects and not self._moments.children

    async def _until_ready(self, names: Sequence[str], generation: int = 1) -> None:
        ready = self._moments.ready
        await self._moments.until(
            f"{len(names)} objects are ready",
            lambda: all(ready.get(n, (0,))[0] >= generation for n in names),
            self.limit,
        )

    def _path(self, name: str) -> str:
        return f"{self.subject.collection.format(NAMESPACE)}/{name}"

    async def _apply(self, name: str) -> Object:
        return await self.rest.create(self.subject.collection.format(NAMESPACE), self.subject.body(name, self.replicas))

    async def _remove(self, name: str) -> None:
        await self.rest.delete(self._path(name), {"propagationPolicy": "Background"})


async def _at_once(parts: Sequence[Coroutine[Any, Any, Any]]) -> None:
    """A few at a time."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(part: Coroutine[Any, Any, Any]) -> None:
        async with room:
            await part

    await asyncio.gather(*(one(part) for part in parts))


def quantiles(values: Sequence[float]) -> dict[str, float]:
    """The median, the 99th of a hundred and the largest of some values."""
    ordered = sorted(values)
    return {
        "p50": ordered[len(ordered) // 2],
        "p99": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)],
        "max": ordered[-1],
    }
