"""One stretch of a measurement: what the operator used in it."""

import asyncio
import os
import time
from collections import Counter
from dataclasses import asdict, dataclass, field

from benchmarks.operator.subject import Subject
from benchmarks.operator.usage import cpu_seconds, forget_peak, peak_mib
from hack.cluster.audit import WRITES, AuditLog

QUIET_SECONDS = 4.0
QUIET_SHARE = 0.05
"""Of a core: who uses less has nothing to do."""


@dataclass
class Cost:
    """What a phase cost the operator."""

    seconds: float
    cpu_s: float
    peak_mib: float
    requests: dict[str, int]
    """By verb and resource, without those for the Lease."""
    refused: int
    writes: int
    load: tuple[float, float]
    """Of the machine, a minute's average at the beginning and at the end."""
    times: dict[str, dict[str, float]] = field(default_factory=dict)
    """Quantiles in seconds of what was timed."""

    def as_json(self) -> dict[str, object]:
        """For the result file."""
        return asdict(self)


class Phase:
    """Begins when it is made."""

    def __init__(self, subject: Subject, audit: AuditLog, *, fresh: bool = False) -> None:
        """`fresh`: of a process that is started in this phase, all counts."""
        self._subject = subject
        self._audit = audit
        self._load = os.getloadavg()[0]
        self._cpu = 0.0 if fresh else cpu_seconds(subject.pid)
        if not fresh:
            forget_peak(subject.pid)
        self._begin = time.monotonic()
        audit.restart()

    async def quiet(self, limit: float = 300.0) -> None:
        """Wait until the operator has nothing to do: it may work on without changing anything that is watched."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            used = cpu_seconds(self._subject.pid)
            await asyncio.sleep(QUIET_SECONDS)
            if cpu_seconds(self._subject.pid) - used < QUIET_SHARE * QUIET_SECONDS:
                return
        raise TimeoutError(f"{self._subject.name} does not come to rest within {limit:g} s")

    async def end(self) -> Cost:
        """What was used since the beginning."""
        seconds, used = time.monotonic() - self._begin, cpu_seconds(self._subject.pid) - self._cpu
        peak, load = peak_mib(self._subject.pid), (self._load, os.getloadavg()[0])
        found = [r for r in await asyncio.to_thread(self._audit.requests) if r.user == self._subject.user]
        found = [request for request in found if request.resource != "leases"]
        return Cost(
            seconds=seconds,
            cpu_s=used,
            peak_mib=peak,
            requests=dict(Counter(f"{r.verb} {r.resource}" for r in found).most_common()),
            refused=sum(request.code >= 400 for request in found),
            writes=sum(request.verb in WRITES for request in found),
            load=load,
        )
