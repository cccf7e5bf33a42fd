"""The operator, or its webhook, as a process of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from tests.integration.eventually import eventually

STOP_SECONDS = 30


class OperatorProcess:
    """One `epd-operator` process. It ends with the context at the latest."""

    def __init__(self, kubeconfig: Path, log: Path, command: str, *options: str) -> None:
        self.log = log
        self.health = ""
        """Base URL of its probes, where a test gave it a port for them."""
        self._command = [
            sys.executable,
            "-c",
            "from epd_operator.controller.main import main; main()",
            command,
            f"--kubeconfig={kubeconfig}",
            *options,
        ]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.runs:
            self.resume()
            self.stop()

    def start(self) -> None:
        """Start it; the log goes on."""
        environment = {key: value for key, value in os.environ.items() if not key.startswith("EPD_")}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, env=environment)

    @property
    def runs(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    def stop(self) -> int:
        """SIGTERM, and wait. Returns the exit status."""
        self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise AssertionError(f"it did not stop within {STOP_SECONDS} s:\n{self.log.read_text()[-4000:]}") from None

    def kill(self) -> None:
        """SIGKILL, and wait."""
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """SIGSTOP."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def lines(self) -> Iterator[dict[str, Any]]:
        """What it logged. Fails where a line is not JSON, as a traceback would be."""
        for line in self.log.read_text().splitlines():
            yield json.loads(line)

    def said(self, event: str) -> bool:
        """Whether it logged this event."""
        return any(line["event"] == event for line in self.lines())

    def wait_for(self, event: str) -> None:
        """Wait until it logged this event."""
        eventually(f"the log says {event!r}", lambda: self.said(event) or not self.runs, seconds=60)
        assert self.runs, self.log.read_text()[-4000:]
