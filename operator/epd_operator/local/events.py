"""What happens in a run, each sentence written once: for people as text, for programs as JSON."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epd_operator.api.role import Role
from epd_operator.local.programs import PROXY, Program
from epd_operator.local.vllm import Vllm
from epd_operator.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened."""

    kind: str
    """The value of `event` in JSON."""
    text: str
    """The sentence for people."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What else JSON says."""
    instance: str | None = None
    details: Sequence[str] = ()
    """Lines below the sentence."""
    is_problem: bool = False

    def as_json(self) -> dict[str, Any]:
        """The event in the shape of `epd run -o json`."""
        subject = {"instance": self.instance} if self.instance else {}
        return {"event": self.kind, **subject, **self.data, "message": self.text}


def planned(plan: Plan, vllm: Vllm, directory: Path, programs: Sequence[Program]) -> Event:
    """What will be started."""
    names = [program.name for program in programs]
    model = plan.proxy.served_name
    text = f"{plan.topology} of {model} on vLLM {vllm.version} ({vllm.program}): {', '.join(names)}"
    data = {
        "name": plan.name,
        "topology": str(plan.topology),
        "model": model,
        "version": vllm.version,
        "vllm": str(vllm.program),
        "instances": names,
        "directory": str(directory),
    }
    return Event("planned", text, data)


def refused(reason: str) -> Event:
    """The plan cannot be run here."""
    return Event("refused", reason, is_problem=True)


def starting(program: Program, pid: int) -> Event:
    """An instance was started."""
    data = {"pid": pid, "url": program.url, "log": str(program.log)}
    return Event("starting", f"starting at {program.url}, process {pid}, log {program.log}", data, program.name)


def ready(program: Program, seconds: float) -> Event:
    """An instance serves the model."""
    data = {"seconds": round(seconds, 1), "url": program.url}
    return Event("ready", f"serves after {seconds:.0f} s", data, program.name)


def serving(url: str, seconds: float) -> Event:
    """Every role serves; the last line before requests can be sent."""
    return Event("serving", f"ready {url}", {"url": url, "seconds": round(seconds, 1)})


def still_starting(program: Program, seconds: float, says: str, line: str | None) -> Event:
    """A sign of life during a long start."""
    data = {"seconds": round(seconds, 1), "state": says, "lastLine": line}
    shown = f"; {line}" if line else ""
    return Event("waiting", f"{says} after {seconds:.0f} s{shown}", data, program.name)


def died(
    program: Program, status: int, *, served: bool, siblings: int, cause: str | None, lines: Sequence[str]
) -> Event:
    """An instance ended by itself. `status` as subprocess gives it; `siblings`: others of its role."""
    how = _how(status)
    meaning = meaning_of_death(program, siblings) if served else "it never served, so the run cannot start"
    data = {
        "role": str(program.role) if program.role else PROXY,
        "exitStatus": status if status >= 0 else None,
        "signal": _signal_name(-status) if status < 0 else None,
        "served": served,
        "meaning": meaning,
        "cause": cause,
        "lastLines": list(lines),
    }
    details = [*([f"likely cause: {cause}"] if cause else []), f"its last {len(lines)} lines:", *lines]
    return Event("died", f"{how}: {meaning}", data, program.name, details if lines else ["it wrote nothing"], True)


def too_slow(program: Program, says: str, lines: Sequence[str]) -> Event:
    """An instance did not serve in time."""
    remedy = f"see its log, or raise spec.{program.role}.startupTimeoutSeconds" if program.role else "see its log"
    text = f"does not serve after {program.startup_seconds} s ({says}); {remedy}"
    data = {"seconds": program.startup_seconds, "state": says, "lastLines": list(lines)}
    return Event("timeout", text, data, program.name, [f"its last {len(lines)} lines:", *lines], True)


def stopping(reason: str) -> Event:
    """The run ends, and why."""
    return Event("stopping", f"stopping everything: {reason}", {"reason": reason})


def stopped(exit_status: int, removed: Sequence[str], survivors: Sequence[int]) -> Event:
    """Everything has ended."""
    data = {"exitStatus": exit_status, "removedSharedMemory": list(removed), "survivors": list(survivors)}
    text = "stopped; nothing is left"
    if survivors:
        text = f"stopped, but the kernel does not end processes {', '.join(map(str, survivors))}"
    return Event("stopped", text, data, is_problem=bool(survivors))


def meaning_of_death(program: Program, siblings: int) -> str:
    """Why the death of an instance that served matters."""
    if program.role is None:
        return "clients reach nothing without the proxy"
    only = siblings == 0
    if program.role is Role.ENCODE:
        if only:
            return "it was the only encoder: no image, video or audio can be encoded any more"
        return "embeddings that only this encoder held are lost, and the requests that wait for them fail"
    if program.role is Role.PREFILL:
        if only:
            return "it was the only prefill instance: no request can begin any more"
        return "KV blocks that decode has not read yet are lost, and the requests that need them fail"
    if only:
        return "it was the only decode instance: no request can be answered any more"
    return "the answers that it was writing break off"


def _how(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    name = _signal_name(-status)
    if -status == signal.SIGKILL:
        return f"was killed by {name} (by someone, or by the kernel when memory ran out)"
    return f"was killed by {name}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
