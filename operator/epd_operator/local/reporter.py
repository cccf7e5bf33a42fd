"""How a run speaks: lines for people, a live table where there is a terminal, JSON for programs."""

import json
import os
import sys
from contextlib import suppress
from typing import Any, Protocol, TextIO

from epd_operator.local.events import Event


class Reporter(Protocol):
    """Takes the events of one run."""

    waiting_seconds: float
    """How often it wants to hear about an instance that still starts."""

    def report(self, event: Event) -> None:
        """Say what happened. Raises nothing: a reader who left must not keep a run from cleaning up."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class JSONReporter:
    """One JSON object a line, on standard output."""

    waiting_seconds = 30.0

    def report(self, event: Event) -> None:
        """Write the event."""
        _write(sys.stdout, json.dumps(event.as_json(), ensure_ascii=False))

    def close(self) -> None:
        """Nothing to do."""


class LineReporter:
    """A line an event on standard error; on standard output only the line that says where to send requests."""

    waiting_seconds = 30.0

    def report(self, event: Event) -> None:
        """Write the event."""
        for line in lines_of(event):
            _write(sys.stdout if event.kind == "serving" else sys.stderr, line)

    def close(self) -> None:
        """Nothing to do."""


class LiveReporter:
    """A table of the instances, redrawn in place below the lines that stay."""

    waiting_seconds = 1.0

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(stderr=True, highlight=False)
        self._states: dict[str, tuple[str, str]] = {}
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False)
        self._live.start()

    def report(self, event: Event) -> None:
        """Show the event."""
        with suppress(OSError):
            if event.kind == "serving":
                self.close()
                _write(sys.stdout, event.text)
                return
            if event.instance is not None:
                self._states[event.instance] = (_COLOURS.get(event.kind, "red"), event.text)
                self._live.update(self._table(), refresh=True)
            if event.instance is None or event.is_problem:
                self._print(event)

    def close(self) -> None:
        """Leave the terminal as it was."""
        with suppress(OSError):
            self._live.stop()

    def _print(self, event: Event) -> None:
        from rich.text import Text

        style = "red" if event.is_problem else ""
        for line in lines_of(event):
            self._console.print(Text(line, style=style))

    def _table(self) -> Any:
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        for instance, (colour, text) in self._states.items():
            table.add_row(Text(instance, style="bold"), Text(text, style=colour, no_wrap=True, overflow="ellipsis"))
        return table


_COLOURS = {"starting": "yellow", "waiting": "yellow", "ready": "green"}


def lines_of(event: Event) -> list[str]:
    """The event as lines of text."""
    subject = f"{event.instance}: " if event.instance else ""
    problem = "error: " if event.is_problem else ""
    return [f"{problem}{subject}{event.text}", *(f"    {line}" for line in event.details)]


def choose(output: str) -> Reporter:
    """The reporter for `-o OUTPUT`: json, or text as the terminal allows."""
    if output == "json":
        return JSONReporter()
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        with suppress(ImportError):
            return LiveReporter()
    return LineReporter()


def _write(stream: TextIO, line: str) -> None:
    try:
        stream.write(line + "\n")
        stream.flush()
    except (OSError, ValueError):
        # The reader is gone. What is still buffered must go nowhere, or Python fails on it at exit.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
