"""Several processes that share a port (SO_REUSEPORT), each with its share of the limits.

The parent binds the port first and does not serve, so that the port is its own and known; it starts the others, starts
again the one that dies, and passes the signals on. Each process offers its metrics on a Unix socket in a directory that
only this user can enter, and whichever is asked for metrics adds up those of all.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from epd_proxy import log
from epd_proxy.content_uuid import random_key
from epd_proxy.options import Options
from epd_proxy.process import Process, bound, serve
from epd_proxy.request import renew_ids

RESTART_SECONDS: Final = 1.0
_SNAPSHOT_SECONDS: Final = 2.0
_ENDING: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(slots=True)
class _Children:
    processes: dict[int, int]
    """Number of the worker by process id."""
    ending: bool = False
    signals: int = 0


def run_workers(options: Options) -> int:
    """Serve in several processes until a signal; return the exit status."""
    log.configure()
    listen = options.config.listen
    try:
        holder = bound(listen.host, listen.port, shared=True)
    except OSError as error:
        print(f"epd-proxy: {error}", file=sys.stderr)  # noqa: T201
        return 2
    port = holder.getsockname()[1]
    # Equal media must get equal names in all processes.
    options = replace(options, uuid_key=options.uuid_key or random_key())
    with tempfile.TemporaryDirectory(prefix="epd-proxy-") as folder:
        children = _Children({})

        def start(number: int) -> None:
            pid = os.fork()
            if pid:
                children.processes[pid] = number
                return
            status = 1
            try:
                holder.close()
                status = _work(options, port, Path(folder), number)
            finally:
                os._exit(status)

        return _supervise(children, start, listen.workers)


def _supervise(children: _Children, start: Callable[[int], None], workers: int) -> int:
    def pass_on(number: int, _: object) -> None:
        children.signals += 1
        children.ending = True
        for pid in list(children.processes):
            os.kill(pid, number)

    for number in range(workers):
        start(number)
    for name in _ENDING:
        signal.signal(name, pass_on)
    worst = 0
    while children.processes:
        pid, status = os.wait()
        worker = children.processes.pop(pid, None)
        if worker is None:
            continue
        code = os.waitstatus_to_exitcode(status)
        if children.ending:
            # One that had only begun to start ends by the signal itself, and as it was asked to.
            worst = max(worst, 0 if -code in _ENDING else abs(code))
        elif code == 2:
            children.ending, worst = True, 2  # it can't start so; the others can't either
            for other in children.processes:
                os.kill(other, signal.SIGTERM)
        else:
            log.warning("worker ended", worker=worker, status=code)
            time.sleep(RESTART_SECONDS)
            if not children.ending:
                start(worker)
    return worst


def _work(options: Options, port: int, folder: Path, number: int) -> int:
    for name in _ENDING:
        signal.signal(name, signal.SIG_DFL)
    renew_ids()
    listener = bound(options.config.listen.host, port, shared=True)
    peers = Peers(folder, number, options.config.listen.workers)
    return serve(options, listener, options.config.listen.workers, peers.attach, announce=number == 0)


class Peers:
    """The processes that share the port, for their metrics."""

    def __init__(self, folder: Path, number: int, workers: int) -> None:
        self._folder = folder
        self._number = number
        self._workers = workers

    async def attach(self, process: Process) -> None:
        """Offer this process's metrics, and let it ask for the others'."""
        path = self._folder / str(self._number)
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(lambda _, writer: self._tell(process, writer), path)
        process.keep(server)
        process.service.other_snapshots = self._others

    async def _tell(self, process: Process, writer: asyncio.StreamWriter) -> None:
        process.service.gauge()
        writer.write(process.service.snapshot())
        writer.write_eof()
        try:
            await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def _others(self) -> list[bytes]:
        numbers = [n for n in range(self._workers) if n != self._number]
        found = await asyncio.gather(*(self._ask(number) for number in numbers))
        return [snapshot for snapshot in found if snapshot]

    async def _ask(self, number: int) -> bytes:
        try:
            async with asyncio.timeout(_SNAPSHOT_SECONDS):
                reader, writer = await asyncio.open_unix_connection(self._folder / str(number))
                try:
                    return await reader.read()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return b""
