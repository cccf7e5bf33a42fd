"""What all requests share: configuration, engines, counts, and how a request is put to an engine."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Sequence
from typing import Any

from epd_proxy.buffers import Budget, BufferPool
from epd_proxy.collect import Answer, Collector
from epd_proxy.config import ProxyConfig, Role
from epd_proxy.content_uuid import ContentNames
from epd_proxy.endpoints import Endpoint, Fleet
from epd_proxy.errors import ProxyError
from epd_proxy.media_policy import MediaPolicy
from epd_proxy.metrics import Metrics
from epd_proxy.pool import PoolTimes
from epd_proxy.request import Request
from epd_proxy.retries import RetryBudget
from epd_proxy.rewrite import Piece, size
from epd_proxy.slots import Slots
from epd_proxy.upstream import EngineError, Sink, Trouble
from epd_proxy.wire import Encoded

JOIN = 16 * 1024
"""Bodies up to this size (bytes) are joined with their head into one write."""

RETRY_AFTER = 2
"""Seconds that a client is told to wait when no engine can serve it now."""


class Core:
    """Made once a process."""

    def __init__(self, config: ProxyConfig, uuid_key: bytes, engine_key: bytes = b"", share: int = 1) -> None:
        self.config = config
        self.share = share
        self.loop = asyncio.get_running_loop()
        self.now = self.loop.time
        self.metrics = Metrics()
        self.fleet = Fleet(config.roles)
        self.names = ContentNames(uuid_key)
        self.pick = random.Random()  # noqa: S311  spreads load, keeps no secret
        self.encoding: dict[tuple[str, str, bytes], asyncio.Future[Encoded]] = {}
        """Items being encoded, so that equal ones are encoded once."""
        self.budget = Budget(0)
        self.buffers = BufferPool(0)
        self.pool_times = PoolTimes(0, 0)
        self._engine_key = engine_key
        self._slots: dict[int, Slots] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.apply(config)

    def apply(self, config: ProxyConfig) -> None:
        """Take a configuration, at the start or a new one."""
        self.config = config
        self.policy = MediaPolicy(config.media)
        self.retries = RetryBudget(config.retries, self.share)
        self.budget.limit = config.limits.in_flight_size // self.share
        self.buffers.idle_limit = self.budget.limit // 4
        self.pool_times.connect = config.timeouts.connect_seconds
        self.pool_times.keep_alive = config.timeouts.engine_keep_alive_seconds
        self.fleet.required = frozenset(config.roles)

    def set_engine_key(self, key: bytes) -> None:
        """Use another key for the engines from now on."""
        self._engine_key = key
        for endpoint in self.fleet.endpoints():
            endpoint.heads.clear()

    def slots(self, endpoint: Endpoint) -> Slots:
        """Return the places at an encoder."""
        slots = self._slots.get(endpoint.serial)
        if slots is None:
            limits = self.config.limits
            share = self.share
            slots = Slots(max(1, limits.encoder_requests // share), limits.encoder_queue // share)
            self._slots[endpoint.serial] = slots
        return slots

    def forget(self, endpoint: Endpoint) -> None:
        """Drop what is kept for an engine that has gone."""
        self._slots.pop(endpoint.serial, None)

    def waiting(self) -> int:
        """How many requests wait for an encoder."""
        return sum(slots.waiting for slots in self._slots.values())

    def head(self, endpoint: Endpoint, line: bytes) -> bytes:
        """Return the unchanging part of a request head for an engine; `line` is method and path."""
        host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
        head = line + b" HTTP/1.1\r\nhost: " + f"{host}:{endpoint.port}".encode()
        if self._engine_key:
            head += b"\r\nauthorization: Bearer " + self._engine_key
        head += b"\r\ncontent-type: application/json\r\nx-request-id: "
        endpoint.heads[line] = head
        return head

    def send(
        self,
        request: Request,
        endpoint: Endpoint,
        line: bytes,
        body: Sequence[Piece],
        *,
        sink: Sink,
        seconds: float,
        extra: bytes = b"",
    ) -> None:
        """Put a request to an engine; `extra` are header lines with their line ends."""
        length = len(body[0]) if len(body) == 1 else size(body)
        if request.trace or b"traceparent" in request.headers:
            extra += _trace_context(request)
        head = b"%b%b\r\ncontent-length: %d\r\n%b\r\n" % (
            endpoint.heads.get(line) or self.head(endpoint, line),
            request.engine_id(),
            length,
            extra,
        )
        self.metrics.upstream_bytes[endpoint.labels] += length
        if length <= JOIN:
            endpoint.pool.send((b"".join((head, *body)),), sink, seconds)
        else:
            endpoint.pool.send((head, *body), sink, seconds)

    async def call(
        self, request: Request, endpoint: Endpoint, body: list[Piece], seconds: float, extra: bytes = b""
    ) -> Answer:
        """Put a request to an engine and return its whole answer; raises EngineError."""
        line = b"POST " + request.path
        sink = Collector(self.loop)
        self.send(request, endpoint, line, body, sink=sink, seconds=seconds, extra=extra)
        try:
            answer = await sink.future
        except asyncio.CancelledError:
            sink.abort()
            raise
        except EngineError as error:
            self.metrics.upstream_requests[endpoint.role, error.trouble.value] += 1
            raise
        self.metrics.upstream_requests[endpoint.role, str(answer.status)] += 1
        return answer

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something in the background and keep it from being collected meanwhile."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Stop what runs in the background."""
        for task in self._tasks:
            task.cancel()

    def may_retry(self, stage: Role, reason: str) -> bool:
        """Say whether a second try is within the budget, and count it."""
        if self.retries.take(self.now()):
            self.metrics.retries[stage, reason] += 1
            return True
        self.metrics.retries_denied[(stage,)] += 1
        return False


def _trace_context(request: Request) -> bytes:
    headers = request.headers
    out = b"traceparent: " + (request.trace.header() if request.trace else headers[b"traceparent"][:256]) + b"\r\n"
    if b"tracestate" in headers:
        out += b"tracestate: " + headers[b"tracestate"][:1024] + b"\r\n"
    return out


def no_engine(role: str, meaning: str = "try again soon") -> ProxyError:
    """Return the error for a request that no engine can serve now."""
    return ProxyError(503, f"no {role} engine is ready; {meaning}", retry_after=RETRY_AFTER)


def engine_error(error: EngineError) -> ProxyError:
    """Return what a client is told when an engine gave no answer."""
    if error.trouble is Trouble.TIMEOUT:
        return ProxyError(504, str(error))
    if error.trouble is Trouble.CONNECT:
        return ProxyError(503, str(error), retry_after=RETRY_AFTER)
    return ProxyError(502, str(error))
