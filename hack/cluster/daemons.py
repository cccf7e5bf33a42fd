"""Long-running processes: started once, found again, and only ever stopped when they are the ones recorded."""

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hack.cluster.command import ENVIRONMENT
from hack.cluster.errors import ClusterError

POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Record:
    """A started process. A process id may be used again, so its start time (clock ticks since boot) belongs to it."""

    pid: int
    started: int
    digest: str

    def alive(self) -> bool:
        """Whether just this process still runs."""
        return _start_time(self.pid) == self.started


class Daemons:
    """The daemons of one state directory: records in `run/`, output in `logs/`."""

    def __init__(self, directory: Path, *, end_with_parent: bool = False) -> None:
        """`end_with_parent`: the kernel kills the daemons when the thread that started them ends, however it ends."""
        self._records = directory / "run"
        self._logs = directory / "logs"
        self._prefix = ["setpriv", "--pdeathsig", "KILL"] if end_with_parent else []

    def ensure(self, name: str, argv: Sequence[str | Path], files: Sequence[Path] = ()) -> None:
        """Start the daemon unless it runs already with this command line and these contents of its files."""
        command = [str(word) for word in argv]
        content = json.dumps(command).encode() + b"".join(path.read_bytes() for path in files)
        digest = hashlib.sha256(content).hexdigest()
        if (record := self.running(name)) is not None:
            if record.digest == digest:
                return
            self.stop(name)
        self._records.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as log:
            # A session of its own: an interrupt at the terminal reaches the tool alone, which ends them in order.
            process = subprocess.Popen(
                [*self._prefix, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=ENVIRONMENT,
                start_new_session=True,
            )
        # Waited for by process id: the daemon may outlive this object, and the tool that started it.
        process.returncode = 0
        record = Record(process.pid, _start_time(process.pid) or 0, digest)
        self._record_file(name).write_text(json.dumps(asdict(record)))

    def running(self, name: str) -> Record | None:
        """The daemon's record if it runs."""
        file = self._record_file(name)
        if not file.exists():
            return None
        record = Record(**json.loads(file.read_text()))
        with contextlib.suppress(ChildProcessError):  # not a child: another call of the tool started it
            os.waitpid(record.pid, os.WNOHANG)
        return record if record.alive() else None

    def stop(self, name: str, grace: float = 10) -> None:
        """End the daemon: SIGTERM, and SIGKILL after `grace` seconds. One that does not run is no error.

        Raises ClusterError: it survives both.
        """
        if self.running(name) is not None and not (
            self._signal(name, signal.SIGTERM, grace) or self._signal(name, signal.SIGKILL, grace)
        ):
            raise ClusterError(f"{name} does not end, not even killed; its record is {self._record_file(name)}")
        self._record_file(name).unlink(missing_ok=True)

    def wait(self, name: str, what: str, check: Callable[[], bool], timeout: float) -> None:
        """Poll `check` until it is true. An exception that it raises counts as not yet true, and is told at the end.

        Raises ClusterError: the daemon ended, or `timeout` seconds passed; the message has the end of its log.
        """
        deadline, last = time.monotonic() + timeout, "it answers, but is not ready"
        while True:
            try:
                if check():
                    return
            except (OSError, ClusterError) as error:
                last = str(error)
            if self.running(name) is None:
                raise ClusterError(f"{name} ended before {what}; the end of {self.log(name)}:\n{self.log_tail(name)}")
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{what}: not within {timeout:g} s: {last}; the end of {self.log(name)}:\n{self.log_tail(name)}"
                )
            time.sleep(POLL_SECONDS)

    def names(self) -> list[str]:
        """The daemons that were started and not stopped; some of them may have ended by themselves."""
        return sorted(file.stem for file in self._records.glob("*.json"))

    def log(self, name: str) -> Path:
        """The file with everything the daemon printed."""
        return self._logs / f"{name}.log"

    def log_tail(self, name: str, lines: int = 12) -> str:
        """The last lines of the daemon's log."""
        try:
            return "\n".join(self.log(name).read_text(errors="replace").splitlines()[-lines:])
        except OSError:
            return "(no log)"

    def _record_file(self, name: str) -> Path:
        return self._records / f"{name}.json"

    def _signal(self, name: str, number: signal.Signals, wait: float) -> bool:
        """Send a signal and wait; whether the daemon is gone."""
        if (record := self.running(name)) is None:
            return True
        with contextlib.suppress(ProcessLookupError):
            os.kill(record.pid, number)
        deadline = time.monotonic() + wait
        while self.running(name) is not None:
            if time.monotonic() > deadline:
                return False
            time.sleep(POLL_SECONDS)
        return True


def _start_time(pid: int) -> int | None:
    """Clock ticks from boot to the process's start (field 22 of its stat); None for no process or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rsplit(")", 1)[1].split()
    return None if fields[0] == "Z" else int(fields[19])
