import os
import signal
from pathlib import Path

import pytest

from hack.cluster.daemons import Daemons
from hack.cluster.errors import ClusterError


def process(daemons: Daemons, name: str) -> int:
    record = daemons.running(name)
    assert record is not None
    return record.pid


def test_a_daemon_is_started_once_and_again_when_its_files_change(tmp_path: Path) -> None:
    daemons, file = Daemons(tmp_path), tmp_path / "file"
    file.write_text("1")
    daemons.ensure("d", ["sleep", "600"], [file])
    first = process(daemons, "d")
    Daemons(tmp_path).ensure("d", ["sleep", "600"], [file])
    assert process(daemons, "d") == first
    file.write_text("2")
    daemons.ensure("d", ["sleep", "600"], [file])
    assert process(daemons, "d") != first
    daemons.stop("d")
    assert daemons.running("d") is None
    assert daemons.names() == []


def test_a_process_that_only_has_the_same_number_is_left_alone(tmp_path: Path) -> None:
    daemons = Daemons(tmp_path)
    daemons.ensure("d", ["sleep", "600"])
    pid = process(daemons, "d")
    record = tmp_path / "run" / "d.json"
    real = record.read_text()
    record.write_text(f'{{"pid": {pid}, "started": 1, "digest": ""}}')
    daemons.stop("d")
    os.kill(pid, 0)
    record.write_text(real)
    daemons.stop("d")


def test_one_that_ignores_the_first_signal_is_killed(tmp_path: Path) -> None:
    daemons = Daemons(tmp_path)
    daemons.ensure("d", ["sh", "-c", "trap '' TERM; echo trapped; while true; do sleep 1; done"])
    daemons.wait("d", "it ignores the signal", lambda: "trapped" in daemons.log_tail("d"), timeout=30)
    daemons.stop("d", grace=0.2)
    assert daemons.running("d") is None


def test_one_that_ends_too_early_is_told_with_its_log(tmp_path: Path) -> None:
    daemons = Daemons(tmp_path)
    daemons.ensure("d", ["sh", "-c", "echo no such flag; exit 1"])
    with pytest.raises(ClusterError, match="no such flag"):
        daemons.wait("d", "it is ready", lambda: False, timeout=30)


def test_one_that_was_killed_is_not_running(tmp_path: Path) -> None:
    daemons = Daemons(tmp_path)
    daemons.ensure("d", ["sleep", "600"])
    os.kill(process(daemons, "d"), signal.SIGKILL)
    with pytest.raises(ClusterError, match="ended before it is ready"):
        daemons.wait("d", "it is ready", lambda: False, timeout=30)
    assert daemons.names() == ["d"]
    daemons.stop("d")
