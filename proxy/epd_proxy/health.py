"""Whether an engine is used: asked for its version and models when it is new, and for its health from then on.

An engine is ejected when it cannot be connected to, fails its health check or is late with several, never because
requests to it failed: they only make the check come at once, so that a client whose requests kill connections takes no
engine from others. The exception is an engine that accepts requests, says that it is healthy and answers none of
several in a row.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from epd_proxy import log
from epd_proxy.collect import Answer, ask
from epd_proxy.config import Role
from epd_proxy.core import Core
from epd_proxy.endpoints import Endpoint, State
from epd_proxy.pool import EnginePool
from epd_proxy.upstream import EngineError, Trouble
from epd_proxy.wire import UnknownReleaseError, minor_of, wire_for

BACK_OFF: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds between the checks of an engine that is down."""

SILENT: Final = 3
"""Requests in a row without an answer in time, after which a healthy engine is ejected."""


LATE: Final = 3
"""Health checks in a row without an answer in time, after which an engine is ejected. A busy one may be late with one,
and where all are busy none would be left; a kubelet's readiness probe has the same patience."""


class Prober:
    """Keeps the state of one engine true."""

    def __init__(self, core: Core, endpoint: Endpoint) -> None:
        self._core = core
        self._endpoint = endpoint
        self._wake = asyncio.Event()
        self._silent = 0
        self._late = 0
        self._failures = 0
        # Of its own: a late check is no request without an answer, and an answer to a check none to a request.
        self._pool = EnginePool(endpoint.host, endpoint.port, endpoint.role, core.pool_times)
        bootstrap = endpoint.bootstrap_port
        self._bootstrap_pool = EnginePool(endpoint.host, bootstrap, "prefill bootstrap", core.pool_times)
        endpoint.pool.on_failure = self._request_failed
        self._task = core.loop.create_task(self._run())

    def stop(self) -> None:
        """Ask no more."""
        self._task.cancel()
        self._pool.close()
        self._bootstrap_pool.close()
        self._endpoint.pool.on_failure = None

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._check()
            except Exception:
                log.exception("health check failed", engine=self._endpoint.url)
            up = self._endpoint.state is State.UP
            steps = min(self._failures, len(BACK_OFF)) - 1
            interval = self._core.config.timeouts.probe_interval_seconds
            seconds = interval if up else min(BACK_OFF[max(0, steps)], interval)
            try:
                async with asyncio.timeout(seconds):
                    if up:
                        await self._wake.wait()
                    else:
                        await asyncio.sleep(seconds)
            except TimeoutError:
                pass

    def _request_failed(self, error: EngineError) -> None:
        endpoint = self._endpoint
        if error.trouble is Trouble.TIMEOUT:
            self._silent += 1
            if self._silent >= SILENT:
                self._silent = 0
                self._down("silent", f"{SILENT} requests in a row had no answer in time")
        elif error.trouble is Trouble.CONNECT and endpoint.state is State.UP:
            self._down("connect", str(error))
        self._wake.set()

    def sweep(self) -> None:
        """Take note of the answers since the last time. Called about once a second."""
        self._pool.sweep()
        self._bootstrap_pool.sweep()
        if self._endpoint.pool.answered:
            self._endpoint.pool.answered = 0
            self._silent = 0

    async def _check(self) -> None:
        endpoint = self._endpoint
        try:
            answer = await self._get("/health")
        except EngineError as error:
            self._late = self._late + 1 if error.trouble is Trouble.TIMEOUT else LATE
            if endpoint.state is not State.UP or self._late >= LATE:
                self._down("health", str(error))
            return
        self._late = 0
        if answer.status != 200:
            self._down("health", f"/health says {answer.status}")
            return
        if endpoint.state is State.UP:
            self._failures = 0
            return
        await self._register()

    async def _register(self) -> None:
        """Ask a new engine, or one that has come back, what it is."""
        endpoint = self._endpoint
        try:
            version = str((await self._json("/version")).get("version", ""))
            models = await self._json("/v1/models")
            endpoint.models = tuple(str(model.get("id")) for model in models.get("data", ()))
            if endpoint.kv_connector == "MooncakeConnector" and endpoint.role is Role.PREFILL:
                await self._bootstrap()
        except (EngineError, ValueError, AttributeError, TypeError) as error:
            self._down("register", f"it does not say what it is: {error}")
            return
        why = self._refusal(version)
        if why:
            self._set(State.REFUSED, why)
            self._failures = len(BACK_OFF)
            return
        endpoint.version = version
        self._failures = self._silent = 0
        self._set(State.UP, f"vLLM {version}")

    def _refusal(self, version: str) -> str:
        """Return why the engine must not be used, empty when it may."""
        endpoint = self._endpoint
        try:
            wire_for(version)
        except UnknownReleaseError as error:
            return str(error)
        revision = self._core.fleet.revisions.get(endpoint.revision)
        others = [e for e in revision.endpoints if e is not endpoint and e.state is State.UP] if revision else []
        if others and minor_of(version) != others[0].minor:
            return f"it is vLLM {version}, and its revision is {others[0].minor}: they do not understand each other"
        if endpoint.announced and minor_of(endpoint.announced) != minor_of(version):
            return f"it is vLLM {version}, and its Service says {endpoint.announced}"
        wanted = self._core.config.served_names
        if wanted and not set(wanted) & set(endpoint.models):
            return f"it serves {', '.join(endpoint.models) or 'nothing'}, and not {', '.join(wanted)}"
        return ""

    async def _bootstrap(self) -> None:
        """Ask the bootstrap server of a Mooncake prefill for its engine ids."""
        endpoint = self._endpoint
        question = _get_line("/query", endpoint.host)
        answer = await ask(self._bootstrap_pool, (question,), self._core.config.timeouts.probe_seconds)
        said = json.loads(answer.body)
        endpoint.bootstrap_ids = {int(rank): str(entry["engine_id"]) for rank, entry in said.items()}

    async def _json(self, path: str) -> dict[str, Any]:
        answer = await self._get(path)
        if answer.status != 200:
            raise ValueError(f"{path} says {answer.status}")
        said = json.loads(answer.body)
        if not isinstance(said, dict):
            raise ValueError(f"{path} says no JSON object")  # noqa: TRY004  the engine's mistake, not a caller's
        return said

    async def _get(self, path: str) -> Answer:
        head = self._core.head(self._endpoint, b"GET " + path.encode()) + b"probe\r\n\r\n"
        return await ask(self._pool, (head,), self._core.config.timeouts.probe_seconds)

    def _down(self, reason: str, why: str) -> None:
        self._failures += 1
        if self._endpoint.state is State.UP:
            self._core.metrics.ejections[self._endpoint.role, reason] += 1
        self._set(State.DOWN, why)

    def _set(self, state: State, why: str) -> None:
        endpoint = self._endpoint
        if (endpoint.state, endpoint.reason) == (state, why):
            return
        changed = endpoint.state is not state
        endpoint.state, endpoint.reason = state, why
        if changed:
            log.info("engine", role=endpoint.role, url=endpoint.url, state=state.value, reason=why)
            self._core.fleet.refresh()


def _get_line(path: str, host: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode()
