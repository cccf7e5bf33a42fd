"""`epd run` from the outside, with a stand-in for vLLM: how it starts, fails and ends, and what it leaves."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from epd_operator.local.processes import all_processes, members
from epd_operator.local.shared_memory import DIRECTORY
from hack.engine_env import EngineEnvironment
from hack.local_run import Event, LocalRun
from hack.waiting import until
from tests.unit.local.conftest import StartRun

END = 60.0


def starting(run: LocalRun) -> list[Event]:
    return [event for event in run.events if event["event"] == "starting"]


def segments(sessions: Iterable[int]) -> list[str]:
    return [path.name for session in sessions if (path := Path(f"{DIRECTORY}fake_vllm_{session}")).exists()]


def assert_nothing_left(run: LocalRun) -> None:
    """No process, port, shared memory or file of the run."""
    sessions = [event["pid"] for event in starting(run)]
    assert until(lambda: not any(members(session) for session in sessions), END)
    assert until(lambda: not run.directory.exists(), END)
    assert segments(sessions) == []
    for event in starting(run):
        with socket.socket() as free:
            free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            free.bind(("127.0.0.1", urlsplit(event["url"]).port or 0))
            free.listen()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_serves_until_it_is_asked_to_stop(start: StartRun, number: signal.Signals) -> None:
    run = start("e-p-d")
    assert run.wait_until_served() == run.instance("proxy")["url"]
    assert run.wait_for("planned")["topology"] == "E+P+D"
    assert [event["instance"] for event in starting(run)] == ["encode-0", "prefill-0", "decode-0", "proxy"]
    assert len(segments(event["pid"] for event in starting(run))) == 3
    assert run.stop(number) == 0
    assert run.wait_for("stopped")["survivors"] == []
    assert_nothing_left(run)


def test_a_signal_in_the_midst_of_the_start(start: StartRun) -> None:
    run = start(encode="never-ready")
    run.instance("proxy")
    assert run.stop(signal.SIGINT) == 128 + signal.SIGINT
    assert_nothing_left(run)


@pytest.mark.parametrize("instance", ["encode-0", "prefill-0", "decode-0", "proxy"])
def test_a_killed_instance_ends_the_run(start: StartRun, instance: str) -> None:
    run = start("e-p-d")
    run.wait_until_served()
    os.kill(run.instance(instance)["pid"], signal.SIGKILL)
    died = run.wait_for("died", END)
    assert (died["instance"], died["signal"], died["served"]) == (instance, "SIGKILL", True)
    assert "only" in died["meaning"] or "nothing" in died["meaning"]
    assert run.process.wait(END) == 1
    # Its engine outlived it, and nobody but us removed what they shared.
    leaves_memory = instance != "proxy"
    assert bool(run.wait_for("stopped")["removedSharedMemory"]) == leaves_memory
    assert_nothing_left(run)


def test_the_cause_of_a_death_at_the_start(start: StartRun) -> None:
    run = start(decode="dies-at-start")
    died = run.wait_for("died", END)
    assert (died["instance"], died["role"], died["exitStatus"], died["served"]) == ("decode-0", "decode", 3, False)
    assert died["cause"] == "ValueError: the flag is wrong"
    assert died["lastLines"][-1] == "see above"
    assert run.process.wait(END) == 1
    assert_nothing_left(run)


def test_binary_output_is_shown_as_text(start: StartRun) -> None:
    run = start(encode="garbage")
    died = run.wait_for("died", END)
    assert died["lastLines"][-1].endswith("red")
    assert all(line.isprintable() for line in died["lastLines"])
    assert run.process.wait(END) == 1


def test_a_second_signal_hurries(start: StartRun) -> None:
    run = start(decode="ignores-sigterm")
    run.wait_until_served()
    run.process.send_signal(signal.SIGINT)
    run.wait_for("stopping", END)
    assert run.stop(signal.SIGINT) == 0
    assert_nothing_left(run)


def test_killing_the_run_itself_leaves_nothing(start: StartRun) -> None:
    run = start()
    run.wait_until_served()
    run.process.kill()
    run.process.wait()
    assert_nothing_left(run)


def test_two_runs_at_once(start: StartRun) -> None:
    first, second = start(), start("e-p-d")
    url = second.wait_until_served()
    first.wait_until_served()
    ports = [event["url"] for run in (first, second) for event in starting(run)]
    assert len(set(ports)) == len(ports)
    assert first.stop() == 0
    assert_nothing_left(first)
    assert second.process.poll() is None
    with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0)):
        pass
    assert len(segments(event["pid"] for event in starting(second))) == 3


def test_secrets_are_in_no_command_line(start: StartRun) -> None:
    run = start()
    run.wait_until_served()
    for key in ("engine-key", "uuid-key"):
        file = run.directory / key
        secret = file.read_bytes()
        assert file.stat().st_mode & 0o777 == 0o600
        lines = [Path(f"/proc/{pid}/cmdline") for pid in all_processes()]
        assert not any(secret in line.read_bytes() for line in lines if line.exists())


def epd_run(file: Path, models: Path, fake: EngineEnvironment, *more: str) -> subprocess.Popen[str]:
    command = [str(Path(sys.executable).with_name("epd")), "run", str(file), "--models", str(models)]
    return subprocess.Popen(
        [*command, "--vllm", str(fake.vllm), *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_text_for_people(write: Callable[..., Path], models: Path, fake: EngineEnvironment) -> None:
    process = epd_run(write("quickstart"), models, fake, "--port", "0")
    assert process.stdout is not None
    assert process.stdout.readline().startswith("ready http://127.0.0.1:")
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=END)
    assert (process.returncode, out) == (0, "")
    assert "encode-0: serves after" in errors
    assert errors.splitlines()[-1] == "stopped; nothing is left"


def test_a_reader_who_leaves_changes_nothing(write: Callable[..., Path], models: Path, fake: EngineEnvironment) -> None:
    process = epd_run(write("quickstart"), models, fake, "--port", "0", "-o", "json")
    assert process.stdout is not None
    assert '"planned"' in process.stdout.readline()
    process.stdout.close()
    process.terminate()
    with process:
        assert process.wait(END) in (0, 128 + signal.SIGTERM)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--vllm", "/nowhere/vllm"], "error: --vllm: no program /nowhere/vllm that can be run"),
        (["--vllm", "/bin/false"], "/bin/false (from --vllm) says that it is version '', which is none"),
        (["--name", "other"], "choose one of them by --name"),
        (["--port", "70000"], "70000 is not in the range"),
    ],
    ids=["no vllm", "no version", "no such name", "no port"],
)
def test_what_cannot_be_run(
    write: Callable[..., Path], models: Path, fake: EngineEnvironment, arguments: list[str], says: str
) -> None:
    process = epd_run(write("quickstart"), models, fake, *arguments)
    _, errors = process.communicate(timeout=END)
    assert process.returncode in (1, 2)
    assert says in errors
    assert "Traceback" not in errors


def test_a_port_that_is_taken(write: Callable[..., Path], models: Path, fake: EngineEnvironment) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        process = epd_run(write("quickstart"), models, fake, "--port", port)
        _, errors = process.communicate(timeout=END)
    assert process.returncode == 1
    assert f"--port {port}: another program listens there" in errors


def test_a_refusal_as_json(write: Callable[..., Path], models: Path, fake: EngineEnvironment) -> None:
    process = epd_run(write("quickstart"), models, fake, "--vllm", "/nowhere/vllm", "-o", "json")
    out, _ = process.communicate(timeout=END)
    said = json.loads(out)
    assert (process.returncode, said["event"]) == (1, "refused")
    assert said["message"].startswith("--vllm: no program /nowhere/vllm")


def test_a_signal_before_anything_has_started(
    write: Callable[..., Path], models: Path, fake: EngineEnvironment, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    fake.vllm.write_text(f"#!/bin/sh\ntouch {asked}\nsleep 1\nexit 1\n")
    process = epd_run(write("quickstart"), models, fake)
    assert until(asked.exists, END)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=END)
    assert (process.returncode, errors) == (128 + signal.SIGINT, "")


def test_another_release_is_refused(write: Callable[..., Path], models: Path, fake: EngineEnvironment) -> None:
    fake.vllm.write_text("#!/bin/sh\necho 0.31.0\n")
    process = epd_run(write("quickstart"), models, fake)
    _, errors = process.communicate(timeout=END)
    assert process.returncode == 1
    assert "spec.engine.version is 0.32.0" in errors
    assert "is 0.31.0" in errors
