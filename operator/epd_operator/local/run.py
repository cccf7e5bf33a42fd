"""Start the programs of a plan, watch them, and end all of them together."""

import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from epd_operator.local import events
from epd_operator.local.errors import LocalError
from epd_operator.local.guardian import OBSERVE_SECONDS, Guardian
from epd_operator.local.logs import cause, last_lines
from epd_operator.local.ports import ADDRESS
from epd_operator.local.processes import end_sessions, members
from epd_operator.local.programs import Program
from epd_operator.local.readiness import probe
from epd_operator.local.reporter import Reporter
from epd_operator.local.shared_memory import SegmentLedger
from epd_operator.local.signals import StopSignals
from epd_operator.local.workspace import Workspace

SHOWN_LINES = 20
"""Lines of a dead instance's log that are shown."""
GRACE_SECONDS = 30.0
"""How long instances that serve may take to end: requests that run, then vLLM's own end (10 seconds on two cores)."""
STARTING_GRACE_SECONDS = 3.0
"""The same for instances that still start: they have no requests, and vLLM 0.32 can miss a SIGTERM while it starts."""
_POLL_SECONDS = 0.2


@dataclass(slots=True)
class _Child:
    program: Program
    process: subprocess.Popen[bytes]
    started: float
    serves: bool = False
    says: str = "does not listen yet"
    heard: float = field(default_factory=time.monotonic)
    """When something was last said about it."""
    due: float | None = None
    """When it was first asked whether it serves; its time to start begins then."""


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What the end of a run had to deal with."""

    removed: list[str]
    """Segments of shared memory that killed processes had left."""
    survivors: list[int]
    """Processes that even SIGKILL did not end."""


class Run:
    """The processes of one run. Whoever makes it calls `end`, however things go."""

    def __init__(self, workspace: Workspace, reporter: Reporter, signals: StopSignals) -> None:
        self._workspace = workspace
        self._reporter = reporter
        self._signals = signals
        self._children: list[_Child] = []
        self._ledger = SegmentLedger()
        self._observed = 0.0
        self._guardian = Guardian(str(workspace.root))

    def start(self, programs: Sequence[Program]) -> None:
        """Start programs, each in a session of its own, until a signal asks to stop.

        Raises LocalError where one cannot be started.
        """
        for program in programs:
            if self._signals.asked:
                return
            with program.log.open("wb") as log:
                try:
                    process = subprocess.Popen(
                        program.argv,
                        env=dict(program.env),
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                except OSError as error:
                    raise LocalError(f"{program.name}: {program.argv[0]} cannot be started: {error}") from error
            self._guardian.watch(process.pid)
            self._children.append(_Child(program, process, time.monotonic()))
            self._reporter.report(events.starting(program, process.pid))

    def wait_until_all_serve(self) -> bool:
        """Wait until every program serves the model; False where one failed or a signal asks to stop."""
        while self._watch():
            if all(child.serves for child in self._children):
                return True
            if not all(self._look_at(child) for child in self._due()):
                return False
            time.sleep(_POLL_SECONDS)
        return False

    def _due(self) -> list[_Child]:
        """Whom to ask whether it serves: the engines, and the proxy once they do, since it cannot before."""
        engines = [child for child in self._children if child.program.role is not None and not child.serves]
        return engines or [child for child in self._children if not child.serves]

    def watch_until_the_end(self) -> None:
        """Wait until an instance dies or a signal asks to stop."""
        while self._watch():
            time.sleep(_POLL_SECONDS)

    def _watch(self) -> bool:
        """Whether to go on: no signal, nobody dead."""
        if self._signals.asked:
            return False
        now = time.monotonic()
        if now - self._observed > OBSERVE_SECONDS:
            self._observed = now
            self._ledger.observe(pid for child in self._children for pid in members(child.process.pid))
        dead = [child for child in self._children if child.process.poll() is not None]
        for child in dead:
            self._report_death(child)
        return not dead

    def _look_at(self, child: _Child) -> bool:
        """Ask an instance that starts whether it serves; False where its time is over."""
        program = child.program
        answer = probe(ADDRESS, program.port, program.model, program.key)
        now = time.monotonic()
        seconds = now - child.started
        child.due = now if child.due is None else child.due
        child.serves, child.says = answer.serves, answer.says
        if child.serves:
            self._reporter.report(events.ready(program, seconds))
        elif now - child.due > program.startup_seconds:
            self._reporter.report(events.too_slow(program, child.says, last_lines(program.log, SHOWN_LINES)))
            return False
        elif now - child.heard > self._reporter.waiting_seconds:
            child.heard = now
            line = next(iter(last_lines(program.log, 1)), None)
            self._reporter.report(events.still_starting(program, seconds, child.says, line))
        return True

    def _report_death(self, child: _Child) -> None:
        program = child.program
        siblings = sum(other.program.role == program.role for other in self._children) - 1
        event = events.died(
            program,
            child.process.returncode,
            served=child.serves,
            siblings=siblings,
            cause=cause(program.log),
            lines=last_lines(program.log, SHOWN_LINES),
        )
        self._reporter.report(event)

    def end(self) -> Leftovers:
        """End the proxy, so that its requests end; then the engines; then remove what they left."""
        sessions = [child.process.pid for child in self._children]
        self._ledger.observe(pid for session in sessions for pid in members(session))
        # Where somebody is dead, the requests that wait for it never end.
        dead = any(child.process.poll() is not None for child in self._children)
        starting = [child for child in self._children if not child.serves]
        proxies = [child for child in self._children if child.serves and child.program.role is None]
        engines = [child for child in self._children if child.serves and child.program.role is not None]
        survivors = [
            *self._end(starting, STARTING_GRACE_SECONDS),
            *self._end(proxies, STARTING_GRACE_SECONDS if dead else GRACE_SECONDS),
            *self._end(engines, GRACE_SECONDS),
        ]
        removed = self._ledger.remove_leftovers()
        self._workspace.remove()
        # Only now: until here somebody may kill this process too.
        self._guardian.dismiss()
        return Leftovers(removed, survivors)

    def _end(self, children: list[_Child], grace_seconds: float) -> list[int]:
        left = end_sessions([child.process.pid for child in children], grace_seconds, self._reap)
        return [pid for pids in left.values() for pid in pids]

    def _reap(self) -> bool:
        for child in self._children:
            child.process.poll()
        return self._signals.hurried
