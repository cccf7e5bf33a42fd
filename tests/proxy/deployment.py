"""A proxy and simulated engines, all in one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from epd_proxy.auth import ApiKeys
from epd_proxy.config import ProxyConfig, Role
from epd_proxy.core import Core
from epd_proxy.members import Member, Members
from epd_proxy.server import ClientConnection
from epd_proxy.service import Service
from epd_proxy.tracing import Tracer
from tests.simulator.client import Response, post, request
from tests.simulator.engine import Engine, World
from tests.simulator.faults import Fault, Mode

TOPOLOGIES = {"PD": (0, 0, 1), "P+D": (0, 1, 1), "E+PD": (2, 0, 1), "E+P+D": (2, 1, 1)}


class Deployment:
    """What a test talks to."""

    def __init__(
        self,
        topology: str = "E+PD",
        *,
        minor: str = "0.33",
        embeddings: str = "ECCPUConnector",
        kv: str = "NixlConnector",
        encoders: int | None = None,
        prefills: int | None = None,
        decoders: int | None = None,
        data_parallel: int = 1,
        engine_key: str = "",
        api_keys: Path | None = None,
        config: dict[str, Any] | None = None,
    ) -> None:
        counts = [
            default if given is None else given
            for default, given in zip(TOPOLOGIES[topology], (encoders, prefills, decoders), strict=True)
        ]
        roles = frozenset(role for role, n in zip(("encode", "prefill", "decode"), counts, strict=True) if n)
        self.world = World(minor=minor, embeddings_connector=embeddings, kv_connector=kv, roles=roles, key=engine_key)
        self.engines: dict[str, list[Engine]] = {
            role: [Engine(self.world, role, number) for number in range(count)]
            for role, count in zip(("encode", "prefill", "decode"), counts, strict=True)
        }
        self.port = 0
        self._api_keys = api_keys
        self._data_parallel = data_parallel
        settings = {"timeouts": {"probeIntervalSeconds": 0.2, **(config or {}).pop("timeouts", {})}, **(config or {})}
        self.config = ProxyConfig.model_validate(settings)

    async def start(self) -> None:
        """Start engines and proxy, and wait until it serves."""
        for engine in self.all_engines():
            await engine.start()
        self.core = Core(self.config, b"k" * 32, self.world.key.encode())
        self.service = Service(self.core, ApiKeys(str(self._api_keys) if self._api_keys else None))
        if self.config.tracing.endpoint:
            self.service.tracer = Tracer(self.config.tracing)
        self.members = Members(self.core)
        self.members.set(self.member(engine) for engine in self.all_engines())
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: ClientConnection(self.service), "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self._sweeper = loop.create_task(self._sweep())
        await self.until(lambda: self.core.fleet.ready)

    def all_engines(self) -> list[Engine]:
        """Every engine."""
        return [engine for engines in self.engines.values() for engine in engines]

    def member(self, engine: Engine, **more: Any) -> Member:
        """Return how the proxy is told of an engine."""
        consumer = engine.role == self.world.consumer
        return Member(
            role=Role(engine.role),
            host="127.0.0.1",
            port=engine.port,
            embeddings_connector=self.world.embeddings_connector,
            kv_connector=self.world.kv_connector,
            data_parallel=self._data_parallel if consumer else 1,
            bootstrap_port=engine.port,
            **more,
        )

    def fault(self, role: str, mode: Mode, argument: int = 0, **more: Any) -> None:
        """Make engines misbehave."""
        self.world.faults.append(Fault(role, mode, argument, **more))

    async def post(self, body: Any, headers: dict[str, str] | None = None, **more: Any) -> Response:
        """POST to the proxy."""
        return await post(self.port, body, headers, **more)

    async def get(self, path: str, headers: dict[str, str] | None = None) -> Response:
        """GET from the proxy."""
        return await request(self.port, "GET", path, None, headers)

    async def until(self, what: Callable[[], Any], seconds: float = 10.0) -> None:
        """Wait until something is the case."""
        async with asyncio.timeout(seconds):
            while not what():  # noqa: ASYNC110  what is waited for sets no event
                await asyncio.sleep(0.005)

    def states(self, role: str) -> list[str]:
        """How the requests of a role ended."""
        return [r.exchange.state for r in self.world.by(role)]

    async def check_leaks(self) -> None:
        """Nothing of any request is left."""
        self.world.faults.clear()
        endpoints = list(self.core.fleet.endpoints())

        def left() -> dict[str, int]:
            return {
                "requests": self.service.admission.in_flight,
                "bytes": self.core.budget.used,
                "encodings": len(self.core.encoding),
                "engines": sum(e.pool.in_flight for e in endpoints),
                "waiting": self.core.waiting(),
            }

        try:
            await self.until(lambda: not any(left().values()), 5)
        except TimeoutError:
            raise AssertionError(f"left behind: {left()}") from None
        assert not self.world.violations

    async def stop(self) -> None:
        """Stop everything."""
        self._sweeper.cancel()
        self._server.close()
        for client in list(self.service.clients):
            client.transport.abort()
        self.members.close()
        self.core.stop()
        for engine in self.all_engines():
            await engine.stop()
        await asyncio.sleep(0.01)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(0.05)
            now = self.service.now()
            for client in [c for c in self.service.clients if c.deadline < now]:
                client.expire()
            self.members.sweep()
