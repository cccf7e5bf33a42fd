"""The processes of a session, as the kernel lists them in /proc.

Every instance leads a session of its own, which all of its descendants share: vLLM's API server, engine core and
workers. A session outlives its leader, so nothing that an instance started can be lost from sight.
"""

import os
import signal
import time
from collections.abc import Callable, Collection
from pathlib import Path

PROC = Path("/proc")
_GONE = frozenset("ZXx")
"""States of a process that has ended and only waits to be noticed."""
_POLL_SECONDS = 0.1
_ORPHAN_SECONDS = 3.0
"""How long processes may outlive the leader of their session."""
_KILL_SECONDS = 10.0
"""How long the kernel may take to end a killed process."""


def members(session: int) -> list[int]:
    """The living processes of a session."""
    return [pid for pid in all_processes() if _session_of(pid) == session]


def all_processes() -> list[int]:
    """Every process of this machine that can be seen from here."""
    return [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]


def _session_of(pid: int) -> int | None:
    """The session of a living process; None where it has ended."""
    try:
        stat = (PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # The name of the program stands in parentheses and may hold any byte.
    state, _, _, session, *_ = stat[stat.rindex(b")") + 1 :].split()
    return None if state.decode() in _GONE else int(session)


def end_sessions(
    sessions: Collection[int], grace_seconds: float, hurry: Callable[[], bool] = lambda: False
) -> dict[int, list[int]]:
    """End every process of the sessions: ask the leaders, and kill what is left after `grace_seconds`.

    `hurry` is called many times a second: it may reap ended children, and cuts the grace short by returning True.
    Returns the processes that even SIGKILL did not end, by session; normally none.
    """
    for session in sessions:
        _signal([pid for pid in members(session) if pid == session], signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    orphaned: dict[int, float] = {}
    while True:
        hurried = hurry()
        now = time.monotonic()
        left = {session: pids for session in sessions if (pids := members(session))}
        for session, pids in left.items():
            if session not in pids and session not in orphaned:
                orphaned[session] = now
                _signal(pids, signal.SIGTERM)
            overdue = now - orphaned.get(session, now) > _ORPHAN_SECONDS
            if hurried or overdue or now > deadline:
                _signal(pids, signal.SIGKILL)
        if not left or now > deadline + _KILL_SECONDS:
            return left
        time.sleep(_POLL_SECONDS)


def _signal(pids: Collection[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue
