"""Requests that need one engine only: text where nothing prefills apart, and what is passed straight through."""

from __future__ import annotations

from collections.abc import Sequence

from epd_proxy.choice import bounded_rendezvous
from epd_proxy.core import Core, engine_error
from epd_proxy.endpoints import Endpoint
from epd_proxy.errors import ProxyError
from epd_proxy.relay import Relay
from epd_proxy.request import Request
from epd_proxy.upstream import EngineError, Trouble


class Direct(Relay):
    """Sends one body to one engine, and to another when the first could not take it. No task: callbacks only."""

    _tried: tuple[Endpoint, ...] = ()
    _key = 0

    def __init__(self, core: Core, request: Request, engines: Sequence[Endpoint], body: bytes | memoryview) -> None:
        """`engines` is not empty."""
        self.core = core
        self.request = request
        self._engines = engines
        self._body = body

    def start(self, key: int = 0) -> None:
        """Send; `key` chooses among the engines, for their caches."""
        if key:
            self._key = key
        engines = self._engines
        self._send(engines[0] if len(engines) == 1 else bounded_rendezvous(key, engines))

    def _send(self, engine: Endpoint) -> None:
        request, core = self.request, self.core
        request.enter("decode")
        self.engine = engine
        request.work = self
        line = request.method + b" " + request.path
        core.send(request, engine, line, (self._body,), sink=self, seconds=core.config.timeouts.first_byte_seconds)

    def failed(self, error: Exception) -> None:
        """Try another engine if that may help."""
        core, engine = self.core, self.engine
        outcome, final = told(error)
        core.metrics.upstream_requests[engine.role, outcome] += 1
        if self.request.connection is None:
            return
        self._tried += (engine,)
        others = [e for e in self._engines if e not in self._tried]
        again = others and elsewhere(error) and len(self._tried) < core.config.retries.attempts
        if again and core.may_retry(engine.role, outcome):
            follower = Direct(core, self.request, self._engines, self._body)
            follower._tried = self._tried
            follower._send(bounded_rendezvous(self._key, others))
        else:
            self.request.fail(final)


def told(error: Exception) -> tuple[str, ProxyError]:
    """Return how a failure is counted and what the client is told."""
    if isinstance(error, EngineError):
        return error.trouble.value, engine_error(error)
    if isinstance(error, ProxyError):
        return str(error.status), error
    raise error


def elsewhere(error: Exception) -> bool:
    """Say whether another engine may be tried: the first could not be reached, hung up, or said that it is full."""
    if isinstance(error, EngineError):
        return error.trouble in (Trouble.CONNECT, Trouble.CLOSED)
    return isinstance(error, ProxyError) and error.status == 503
