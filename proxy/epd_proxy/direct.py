"""Requests that need one engine only: text where nothing prefills apart, and what is passed straight through."""

from __future__ import annotations

from collections.abc import Sequence

from epd_proxy.choice import bounded_rendezvous
from epd_proxy.core import Core, engine_error
from epd_proxy.endpoints import Endpoint
from epd_proxy.errors import ProxyError
from epd_proxy.relay import Relay
from epd_proxy.request import Request
from epd_proxy.rewrite import Piece
from epd_proxy.upstream import EngineError, Trouble


class Direct:
    """Sends one body to one engine, and to another when the first could not take it. No task: callbacks only."""

    __slots__ = ("_body", "_core", "_engines", "_key", "_line", "_request", "_tried")

    def __init__(
        self, core: Core, request: Request, engines: Sequence[Endpoint], body: list[Piece], key: int = 0
    ) -> None:
        """`engines` is not empty; `key` chooses among them, for caches."""
        self._core = core
        self._request = request
        self._engines = engines
        self._body = body
        self._key = key
        self._tried: list[Endpoint] = []
        self._line = request.method + b" " + request.path

    def start(self) -> None:
        """Send."""
        self._send(bounded_rendezvous(self._key, self._engines))

    def _send(self, engine: Endpoint) -> None:
        request, core = self._request, self._core
        self._tried.append(engine)
        timeouts = core.config.timeouts
        relay = Relay(request, timeouts.idle_seconds, self._began)
        request.work = relay
        request.stage = "decode"
        core.send(request, engine, self._line, self._body, sink=relay, seconds=timeouts.first_byte_seconds)

    def _began(self, relay: Relay, error: Exception | None) -> None:
        core, engine = self._core, self._tried[-1]
        if error is None:
            core.metrics.upstream_requests[engine.ok_labels] += 1
            relay.on_broken = core.stream_broken
            return
        outcome, final = told(error)
        core.metrics.upstream_requests[engine.role, outcome] += 1
        if self._request.connection is None:
            return
        others = [e for e in self._engines if e not in self._tried]
        again = others and elsewhere(error) and len(self._tried) < core.config.retries.attempts
        if again and core.may_retry(engine.role, outcome):
            self._send(bounded_rendezvous(self._key, others))
        else:
            self._request.fail(final)


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
