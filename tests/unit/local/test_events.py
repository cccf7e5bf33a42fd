import signal
from pathlib import Path

import pytest

from epd_operator.api.role import Role
from epd_operator.local import events
from epd_operator.local.programs import Program
from epd_operator.local.reporter import lines_of


def program(role: Role | None) -> Program:
    name = f"{role}-0" if role else "proxy"
    return Program(name, role, ("vllm",), {}, 1, Path("/log"), "tiny", None, 60)


@pytest.mark.parametrize(
    ("role", "siblings", "says"),
    [
        (Role.ENCODE, 0, "the only encoder"),
        (Role.ENCODE, 1, "embeddings that only this encoder held are lost"),
        (Role.PREFILL, 0, "the only prefill instance"),
        (Role.PREFILL, 1, "KV blocks"),
        (Role.DECODE, 0, "the only decode instance"),
        (Role.DECODE, 1, "break off"),
        (None, 0, "clients reach nothing"),
    ],
)
def test_why_a_death_matters(role: Role | None, siblings: int, says: str) -> None:
    event = events.died(program(role), 1, served=True, siblings=siblings, cause=None, lines=["bye"])
    assert says in event.text
    assert event.as_json()["meaning"] in event.text


@pytest.mark.parametrize(
    ("status", "exit_status", "name", "says"),
    [
        (3, 3, None, "ended with status 3"),
        (0, 0, None, "ended with status 0"),
        (-signal.SIGKILL, None, "SIGKILL", "was killed by SIGKILL (by someone, or by the kernel when memory ran out)"),
        (-signal.SIGSEGV, None, "SIGSEGV", "was killed by SIGSEGV"),
        (-40, None, "signal 40", "was killed by signal 40"),
    ],
)
def test_how_it_died(status: int, exit_status: int | None, name: str | None, says: str) -> None:
    event = events.died(program(Role.DECODE), status, served=False, siblings=0, cause="E: e", lines=["E: e", "bye"])
    said = event.as_json()
    assert (said["exitStatus"], said["signal"], said["served"]) == (exit_status, name, False)
    assert lines_of(event) == [
        f"error: decode-0: {says}: it never served, so the run cannot start",
        "    likely cause: E: e",
        "    its last 2 lines:",
        "    E: e",
        "    bye",
    ]


def test_a_death_without_a_word() -> None:
    event = events.died(program(None), 1, served=True, siblings=0, cause=None, lines=[])
    assert lines_of(event)[1:] == ["    it wrote nothing"]


def test_too_slow_names_the_field_that_helps() -> None:
    says = events.too_slow(program(Role.ENCODE), "does not listen yet", []).text
    assert says == (
        "does not serve after 60 s (does not listen yet); see its log, or raise spec.encode.startupTimeoutSeconds"
    )
    assert "startupTimeoutSeconds" not in events.too_slow(program(None), "does not listen yet", []).text


def test_what_is_left_is_said() -> None:
    assert events.stopped(0, [], []).text == "stopped; nothing is left"
    left = events.stopped(1, ["/dev/shm/x"], [7, 8])
    assert left.is_problem
    assert left.text == "stopped, but the kernel does not end processes 7, 8"
    assert left.as_json()["removedSharedMemory"] == ["/dev/shm/x"]
