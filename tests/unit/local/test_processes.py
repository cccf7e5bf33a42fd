import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from epd_operator.local.processes import all_processes, end_sessions, members
from hack.waiting import until

SLEEP = "import time; time.sleep(300)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); " + SLEEP
PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEP!r}]); print(flush=True); " + SLEEP


@contextmanager
def session(code: str) -> Iterator[subprocess.Popen[bytes]]:
    """A session whose leader runs `code`, which prints a line once it is set up."""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_members_are_the_whole_session_and_nobody_else() -> None:
    with session(PARENT) as leader:
        found = members(leader.pid)
        assert len(found) == 2
        assert leader.pid in found
        assert set(found) < set(all_processes())
        assert end_sessions([leader.pid], 0, lambda: leader.poll() is None and False) == {}


def test_a_zombie_is_no_member() -> None:
    with session("print(flush=True)") as leader:
        assert until(lambda: not members(leader.pid), 30)
        assert leader.pid in all_processes()


def test_sigterm_is_enough_for_the_willing() -> None:
    with session("print(flush=True); " + SLEEP) as leader:
        assert end_sessions([leader.pid], 60, lambda: leader.poll() is None and False) == {}
        assert leader.wait() == -15


@pytest.mark.parametrize(("grace", "hurried"), [(0.0, False), (3600.0, True)], ids=["after the grace", "in a hurry"])
def test_sigkill_for_the_stubborn(grace: float, *, hurried: bool) -> None:
    with session(STUBBORN) as leader:
        assert end_sessions([leader.pid], grace, lambda: leader.poll() is None and hurried) == {}
        assert leader.wait() == -9


def test_orphans_end_too() -> None:
    with session(PARENT) as leader:
        leader.kill()
        leader.wait()
        assert len(members(leader.pid)) == 1
        assert end_sessions([leader.pid], 60) == {}


def test_an_ended_session_is_left_alone() -> None:
    with session("print(flush=True)") as leader:
        leader.wait()
        begun = time.monotonic()
        assert end_sessions([leader.pid], 60) == {}
        assert time.monotonic() - begun < 60
