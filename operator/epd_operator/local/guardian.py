"""A process that cleans up when `epd run` itself is killed.

Whoever starts it writes JSON lines to its standard input and keeps that open: `{"directory": PATH}` for the run's
directory, `{"session": PID}` for each instance, `{"done": true}` when it has cleaned up itself. When the input ends
without that last line, its writer is dead: the guardian ends the sessions, removes the shared memory that they mapped,
and the directory.

It imports nothing but the standard library and its neighbours, since it stays in memory for as long as the run.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from typing import Any

from epd_operator.local.processes import end_sessions, members
from epd_operator.local.shared_memory import SegmentLedger

OBSERVE_SECONDS = 5.0
"""How often shared memory is looked at: all of it is made while an instance starts, which takes longer."""
GRACE_SECONDS = 10.0


class Guardian:
    """The guardian as its owner sees it."""

    def __init__(self, directory: str) -> None:
        # -P: a file of the user's directory must not stand in for a module of the standard library.
        command = [sys.executable, "-P", "-m", __name__]
        null = subprocess.DEVNULL
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=null, stderr=null, start_new_session=True, cwd="/"
        )
        self._tell({"directory": directory})

    def watch(self, session: int) -> None:
        """Have this session ended too."""
        self._tell({"session": session})

    def dismiss(self) -> None:
        """Everything is cleaned up: the guardian ends and does nothing."""
        self._tell({"done": True})
        with contextlib.suppress(OSError):
            self._input.close()
        self._process.wait()

    @property
    def _input(self) -> Any:
        assert self._process.stdin is not None  # noqa: S101  (asked for with PIPE)
        return self._process.stdin

    def _tell(self, message: dict[str, Any]) -> None:
        # A guardian that somebody killed is missed only if this process is killed as well.
        with contextlib.suppress(OSError, ValueError):
            self._input.write(json.dumps(message).encode() + b"\n")
            self._input.flush()


def stand_guard(source: int) -> None:
    """Read messages from the file descriptor `source` until it ends, then clean up unless told that it is done."""
    sessions: list[int] = []
    ledger = SegmentLedger()
    directory: str | None = None
    pending = b""
    while True:
        readable, _, _ = select.select([source], [], [], OBSERVE_SECONDS)
        ledger.observe(pid for session in sessions for pid in members(session))
        if not readable:
            continue
        chunk = os.read(source, 65536)
        if not chunk:
            break
        *lines, pending = (pending + chunk).split(b"\n")
        for message in map(json.loads, lines):
            if message.get("done"):
                return
            directory = message.get("directory", directory)
            sessions += [message["session"]] if "session" in message else []
    end_sessions(sessions, GRACE_SECONDS)
    ledger.remove_leftovers()
    if directory is not None:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    stand_guard(sys.stdin.fileno())
