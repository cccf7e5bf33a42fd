"""`epd run` from the outside: started as a user starts it, followed by its events."""

import json
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from hack.engine_env import EngineEnvironment

Event = dict[str, Any]
START_SECONDS = 600.0
"""Three engines at once on two busy cores take about 100 s."""
END_SECONDS = 120.0


class RunError(Exception):
    """The run did not do what was awaited; the message holds its events and errors."""


class LocalRun:
    """One `epd run -o json`. As a context it is stopped at the end."""

    def __init__(self, file: Path, models: Path, engine: EngineEnvironment, *more: str) -> None:
        program = Path(sys.executable).with_name("epd")
        command = [str(program), "run", str(file), "--models", str(models), "--vllm", str(engine.vllm)]
        self.process = subprocess.Popen(
            [*command, "--port", "0", "-o", "json", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.events: list[Event] = []
        self.errors: list[str] = []
        self._arrived: queue.Queue[Event | None] = queue.Queue()
        targets = (self._read_events, self._read_errors)
        self._readers = [threading.Thread(target=target, daemon=True) for target in targets]
        for reader in self._readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to stop and return its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            status = self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RunError(f"does not end within {END_SECONDS:.0f} s of {number.name}") from None
        for reader in self._readers:
            reader.join()
        return status

    def wait_for(self, kind: str, seconds: float = START_SECONDS) -> Event:
        """The first event of this kind, from now on or before. Raises RunError where the run ends without one."""
        return self._wait(lambda event: event["event"] == kind, kind, seconds)

    def wait_until_served(self) -> str:
        """The URL to send requests to."""
        return str(self.wait_for("serving")["url"])

    def instance(self, name: str) -> Event:
        """Where an instance runs: its event `starting`, with pid, url and log."""
        return self._wait(lambda event: event["event"] == "starting" and event["instance"] == name, name, START_SECONDS)

    @property
    def directory(self) -> Path:
        """The directory of the run."""
        return Path(self.wait_for("planned")["directory"])

    def _wait(self, wanted: Callable[[Event], bool], what: str, seconds: float) -> Event:
        for event in self.events:
            if wanted(event):
                return event
        deadline = time.monotonic() + seconds
        for event in self._arriving(deadline):
            self.events.append(event)
            if wanted(event):
                return event
        said = "\n".join([*(json.dumps(event) for event in self.events), *self.errors])
        raise RunError(f"no event {what} within {seconds:.0f} s:\n{said}")

    def _arriving(self, deadline: float) -> Iterator[Event]:
        while True:
            try:
                event = self._arrived.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return
            if event is None:
                self._arrived.put(None)
                return
            yield event

    def _read_events(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._arrived.put(json.loads(line))
        self._arrived.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            self.errors.extend(lines)
