"""One serving process: its event loop, its socket, its signals, its end."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from epd_proxy import log
from epd_proxy.access_log import AccessLog
from epd_proxy.auth import ApiKeys, SecretError, read_secret
from epd_proxy.content_uuid import random_key
from epd_proxy.core import Core
from epd_proxy.discovery import Watcher
from epd_proxy.kube import ApiServer, KubeClient, KubeError
from epd_proxy.members import Members
from epd_proxy.options import Options, OptionsError, read_document, validated
from epd_proxy.server import ClientConnection
from epd_proxy.service import Service
from epd_proxy.tracing import Tracer

BACKLOG = 4096
SWEEP_SECONDS = 1.0
RELOAD_SECONDS = 5.0


def serve(
    options: Options,
    listener: socket.socket | None = None,
    share: int = 1,
    attach: Callable[[Process], Awaitable[None]] | None = None,
    *,
    announce: bool = True,
) -> int:
    """Serve until a signal; return the exit status.

    Where several processes share a port, `listener` is bound already, `share` is their number, `attach` makes this one
    known to the others and one of them announces itself.
    """
    log.configure()
    try:
        return uvloop.run(Process(options, share).run(listener, attach, announce=announce))
    except (SecretError, OptionsError, KubeError, OSError) as error:
        print(f"epd-proxy: {error}", file=sys.stderr)  # noqa: T201
        return 2


def bound(host: str, port: int, *, shared: bool) -> socket.socket:
    """Return a socket bound to an address; `shared` lets other processes bind it too."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    out = socket.socket(family, socket.SOCK_STREAM)
    try:
        out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        out.bind((host, port))
    except OSError as error:
        out.close()
        raise OSError(f"cannot listen on {host} port {port}: {error.strerror}") from None
    return out


def settle_memory() -> None:
    """Keep the collector away from what lives as long as the process, and let it look at the rest less often.

    Requests leave no cycles behind, so that there is little for it to find.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


class Process:
    """Serves one share of the whole."""

    def __init__(self, options: Options, share: int) -> None:
        self._options = options
        self._share = share
        self._stop = asyncio.Event()
        self._signals = 0
        self._stamps: dict[str, int] = {}
        self._kept: list[asyncio.AbstractServer] = []

    async def run(
        self,
        listener: socket.socket | None,
        attach: Callable[[Process], Awaitable[None]] | None = None,
        *,
        announce: bool = True,
    ) -> int:
        """Serve until a signal; return the exit status."""
        options = self._options
        config = options.config
        loop = asyncio.get_running_loop()
        core = self._core = Core(config, options.uuid_key or random_key(), self._engine_key(), self._share)
        keys = self._keys = ApiKeys(config.secrets.api_keys_directory, options.api_keys_file)
        service = self.service = Service(core, keys)
        if config.access_log:
            service.log = AccessLog()
        if config.tracing.endpoint:
            service.tracer = Tracer(config.tracing)
            core.spawn(service.tracer.run())
        members = self._members = Members(core)
        if options.members:
            members.set(options.members)
        elif config.discovery:
            watcher = Watcher(KubeClient(ApiServer.of_pod()), config.discovery, members, core.fleet)
            core.spawn(watcher.run())
        if listener is None:
            listener = bound(config.listen.host, config.listen.port, shared=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        server = await loop.create_server(
            lambda: ClientConnection(service), sock=listener, backlog=BACKLOG, start_serving=True
        )
        if attach:
            await attach(self)
        if announce:
            host, port = listener.getsockname()[:2]
            shown = f"[{host}]" if ":" in host else host
            print(f"epd-proxy serves on http://{shown}:{port}", flush=True)  # noqa: T201  what a starter waits for
        settle_memory()
        housekeeping = [loop.create_task(self._sweep()), loop.create_task(self._reload())]
        await self._stop.wait()
        await self._drain(server)
        for task in housekeeping:
            task.cancel()
        core.stop()
        for kept in self._kept:
            kept.close()
        members.close()
        if service.log:
            service.log.flush()
        return 0

    def keep(self, server: asyncio.AbstractServer) -> None:
        """Close a server when this process ends."""
        self._kept.append(server)

    def _engine_key(self) -> bytes:
        path = self._options.config.secrets.engine_key_file
        return read_secret(path) if path else b""

    # ------------------------------------------------------------------ ends

    def _signalled(self) -> None:
        self._signals += 1
        if self._signals > 1:
            os._exit(1)  # asked twice: at once, whatever is in flight
        self._stop.set()

    async def _drain(self, server: asyncio.AbstractServer) -> None:
        """Take no more, finish what is in flight, then return."""
        drain = self._core.config.drain
        self.service.admission.draining = True
        log.info("draining", in_flight=self.service.admission.in_flight)
        if drain.delay_seconds:
            await asyncio.sleep(drain.delay_seconds)
        server.close()
        deadline = self.service.now() + drain.timeout_seconds
        while self.service.clients and self.service.now() < deadline:
            for client in list(self.service.clients):
                client.close_if_idle()
            await asyncio.sleep(0.05)
        left = len(self.service.clients)
        if left:
            log.warning("drain ended with clients left", clients=left)

    # ------------------------------------------------------------------ housekeeping

    async def _sweep(self) -> None:
        quiet = 0
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = self.service.now()
            for client in [c for c in self.service.clients if c.deadline < now]:
                client.expire()
            self._members.sweep()
            quiet = 0 if self._core.budget.used else quiet + 1
            if quiet >= 10:
                quiet = 0
                self._core.buffers.trim()

    async def _reload(self) -> None:
        """Read files again that have changed: the configuration and the secrets."""
        self._changed()
        while True:
            await asyncio.sleep(RELOAD_SECONDS)
            changed = self._changed()
            if "config" in changed:
                self._new_config()
            if "api-keys" in changed:
                self._keys.reload()
            if "engine-key" in changed:
                try:
                    self._core.set_engine_key(self._engine_key())
                except SecretError as error:
                    log.warning("engine key kept", reason=str(error))

    def _changed(self) -> set[str]:
        secrets = self._core.config.secrets
        watched = {
            "config": self._options.config_file,
            "api-keys": secrets.api_keys_directory or self._options.api_keys_file,
            "engine-key": secrets.engine_key_file,
        }
        out: set[str] = set()
        for name, path in watched.items():
            if path is None:
                continue
            stamp = _stamp(Path(path))
            if self._stamps.get(name) != stamp:
                self._stamps[name] = stamp
                out.add(name)
        return out

    def _new_config(self) -> None:
        path = self._options.config_file
        if path is None:
            return
        try:
            config = validated(read_document(path), self._options.overrides, str(path))
        except OptionsError as error:
            log.warning("configuration kept", reason=str(error))
            return
        fixed = ("listen", "discovery", "secrets", "tracing", "access_log")
        later = [name for name in fixed if getattr(config, name) != getattr(self._core.config, name)]
        self._core.apply(config)
        self.service.apply()
        log.info("configuration read", needs_a_restart=later)


def _stamp(path: Path) -> int:
    """Return a number that changes with a file, or with what a directory holds."""
    try:
        entries = sorted(path.iterdir()) if path.is_dir() else [path]
        return hash(tuple((str(e), e.stat().st_mtime_ns, e.stat().st_ino) for e in entries))
    except OSError:
        return 0
