import io
import json
import os
import pty
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from epd_operator.api.role import Role
from epd_operator.local import events
from epd_operator.local.reporter import JSONReporter, LineReporter, LiveReporter, Reporter, choose
from tests.unit.local.test_events import program

EVENTS = [
    events.starting(program(Role.ENCODE), 7),
    events.still_starting(program(Role.ENCODE), 31, "does not listen yet", "loading"),
    events.ready(program(Role.ENCODE), 42),
    events.serving("http://127.0.0.1:1", 43.21),
    events.died(program(Role.ENCODE), 1, served=True, siblings=0, cause=None, lines=["last words"]),
]


def report(reporter: Reporter) -> None:
    for event in EVENTS:
        reporter.report(event)
    reporter.close()


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    report(JSONReporter())
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in said] == ["starting", "waiting", "ready", "serving", "died"]
    assert said[3] == {
        "event": "serving",
        "url": "http://127.0.0.1:1",
        "seconds": 43.2,
        "message": "ready http://127.0.0.1:1",
    }


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    report(LineReporter())
    out, errors = capsys.readouterr()
    assert out == "ready http://127.0.0.1:1\n"
    assert errors.splitlines()[1:3] == [
        "encode-0: does not listen yet after 31 s; loading",
        "encode-0: serves after 42 s",
    ]
    assert errors.splitlines()[-1] == "    last words"


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, term: str) -> Iterator[int]:
    """Standard error is a terminal; yields its other end."""
    master, slave = pty.openpty()
    with os.fdopen(slave, "w", buffering=1) as stream, monkeypatch.context() as patch:
        patch.setenv("TERM", term)
        patch.setattr(sys, "stderr", stream)
        yield master
    os.close(master)


def read_all(descriptor: int) -> str:
    """What was written to the terminal."""
    shown = b""
    while select.select([descriptor], [], [], 0)[0]:
        shown += os.read(descriptor, 65536)
    return shown.decode()


def test_live_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with terminal(monkeypatch, "xterm") as other_end:
        reporter = choose("text")
        assert isinstance(reporter, LiveReporter)
        report(reporter)
        sys.stderr.flush()
        shown = read_all(other_end)
    assert "serves after 42 s" in shown
    assert "last words" in shown
    assert capsys.readouterr().out == "ready http://127.0.0.1:1\n"


@pytest.mark.parametrize(
    ("output", "kind"), [("json", JSONReporter), ("text", LineReporter)], ids=["json", "no terminal"]
)
def test_choice(output: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert isinstance(choose(output), kind)


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch, "dumb"):
        assert isinstance(choose("text"), LineReporter)


def test_a_reader_who_left_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        report(JSONReporter())
