"""`epd run`: everything from a plan to the exit status."""

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from epd_operator.local import events
from epd_operator.local.devices import share_out
from epd_operator.local.errors import LocalError
from epd_operator.local.ports import HeldPorts
from epd_operator.local.programs import (
    Program,
    Surroundings,
    check_model,
    demands,
    engine_programs,
    instances,
    proxy_program,
)
from epd_operator.local.reporter import Reporter
from epd_operator.local.run import Run
from epd_operator.local.signals import StopSignals
from epd_operator.local.vllm import find_vllm
from epd_operator.local.workspace import Workspace
from epd_operator.plan.plan import Plan

DEFAULT_PORT = 8000
EXIT_STOPPED = 0
EXIT_FAILED = 1
EXIT_SIGNAL = 128
"""Added to the number of a signal that stopped the run before it served, as shells do."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user chose for this run."""

    models: Path | None = None
    """Directory that stands for the model volume."""
    vllm: str | None = None
    """The `vllm` program; None: `$EPD_VLLM`, then PATH."""
    port: int | None = None
    """Of the proxy; 0: any free one, None: DEFAULT_PORT or, where that is taken, any free one."""
    api_keys: Path | None = None
    """File of the keys that clients may present."""
    logs: Path | None = None
    """Directory in which the logs stay; None: they are removed with the run."""


def launch(plan: Plan, options: Options, reporter: Reporter, environ: Mapping[str, str]) -> int:
    """Run a plan until a signal asks to stop or an instance dies; returns the exit status.

    Where the plan cannot be run on this machine the reporter is told why. In each case nothing is left.
    """
    with StopSignals() as signals:
        try:
            return _launch(plan, options, reporter, environ, signals)
        except LocalError as error:
            # Ctrl-C reaches the programs that are asked for their version too, and then they say nothing.
            if signals.asked:
                return EXIT_SIGNAL + signals.received[0]
            reporter.report(events.refused(str(error)))
            return EXIT_FAILED


def _launch(plan: Plan, options: Options, reporter: Reporter, environ: Mapping[str, str], signals: StopSignals) -> int:
    _check(plan, options)
    vllm = find_vllm(options.vllm, environ, plan.release)
    shares = share_out(demands(plan), environ)
    with contextlib.ExitStack() as stack:
        workspace = Workspace.create(options.logs)
        stack.callback(workspace.remove)
        ports = stack.enter_context(HeldPorts())
        around = Surroundings(
            vllm, workspace, ports, environ, options.models, options.api_keys, *workspace.new_key("engine-key"), shares
        )
        port = _take_port(ports, options.port)
        engines = engine_programs(plan, around)
        proxy = proxy_program(plan, engines, port, around)
        programs = [*engines, proxy]
        reporter.report(events.planned(plan, vllm, workspace.root, programs))
        return _run(programs, proxy.url, workspace, reporter, signals)


def _take_port(ports: HeldPorts, wanted: int | None) -> int:
    if wanted is None:
        with contextlib.suppress(LocalError):
            return ports.take_exactly(DEFAULT_PORT)
    return ports.take_exactly(wanted) if wanted else ports.take()


def _check(plan: Plan, options: Options) -> None:
    if plan.suspended:
        raise LocalError("spec.suspend is true: there is nothing to run; remove it")
    if not any(role.role.value == "decode" for _, role in instances(plan)):
        raise LocalError("spec.decode.replicas is 0: nothing could answer; set it to 1")
    if plan.proxy.api_keys_secret is not None and options.api_keys is None:
        raise LocalError(
            f"spec.proxy.apiKeysSecretRef names the Secret {plan.proxy.api_keys_secret}, which only a cluster has; "
            "give the keys in a file, one a line, by --api-keys-file"
        )
    check_model(plan, options.models)


def _run(programs: list[Program], url: str, workspace: Workspace, reporter: Reporter, signals: StopSignals) -> int:
    status = EXIT_FAILED
    begun = time.monotonic()
    run = Run(workspace, reporter, signals)
    try:
        run.start(programs)
        served = run.wait_until_all_serve()
        if served:
            reporter.report(events.serving(url, time.monotonic() - begun))
            run.watch_until_the_end()
        if signals.asked:
            status = EXIT_STOPPED if served else EXIT_SIGNAL + signals.received[0]
        reason = f"asked to by {signals.received[0].name}" if signals.asked else "the rest cannot serve alone"
        reporter.report(events.stopping(reason))
    finally:
        leftovers = run.end()
    reporter.report(events.stopped(status, leftovers.removed, leftovers.survivors))
    return status
