"""The proxy as its connections see it: which request goes which way."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from epd_proxy.access_log import AccessLog
from epd_proxy.admission import Admission, too_large
from epd_proxy.auth import ApiKeys
from epd_proxy.choice import prefix_key
from epd_proxy.config import CacheScope, Role
from epd_proxy.core import Core, no_engine
from epd_proxy.direct import Direct
from epd_proxy.endpoints import Endpoint, Revision
from epd_proxy.errors import ProxyError
from epd_proxy.heads import RequestHead
from epd_proxy.items import Item, find_items
from epd_proxy.other_apis import (
    REFUSED_MEMBERS,
    check_urls,
    media_urls,
    plain,
    plain_chat,
    refuse_members,
)
from epd_proxy.request import JSON, Kind, Request
from epd_proxy.scanner import MalformedError, Remainder, Scan, loads, punch, scan
from epd_proxy.server import ClientConnection
from epd_proxy.tracing import Tracer
from epd_proxy.walk import Walk

PREFIX: Final = 1024
"""Bytes of a conversation's start that choose the engine with its prefix cache."""

QUICK: Final = 64 * 1024
"""Chat bodies up to this size (bytes) are searched for media first. One without goes to its engine unparsed."""

TEXT: Final = b"text/plain; version=0.0.4; charset=utf-8"


_LABELS: Final[dict[Kind | None, tuple[str]]] = {None: ("unknown",), **{kind: (kind.value,) for kind in Kind}}


class Service:
    """Serves requests; made once a process."""

    def __init__(self, core: Core, keys: ApiKeys) -> None:
        self._core = core
        self.admission = Admission(core, keys)
        self.admit = self.admission.admit
        self.grow = self.admission.grow
        self.buffer = core.buffers.take
        self.log: AccessLog | None = None
        self.tracer: Tracer | None = None
        self.clients: set[ClientConnection] = set()
        self.heads: dict[bytes, RequestHead] = {}
        self.now = core.loop.time
        self.other_snapshots: Callable[[], Awaitable[list[bytes]]] | None = None
        """Returns the metrics of the other processes."""
        self.apply()

    def apply(self) -> None:
        """Take the core's configuration."""
        timeouts, limits = self._core.config.timeouts, self._core.config.limits
        self.head_seconds = timeouts.client_head_seconds
        self.body_seconds = timeouts.client_body_seconds
        self.keep_alive_seconds = timeouts.client_keep_alive_seconds
        self.stall_seconds = timeouts.idle_seconds
        self.max_clients = max(1, limits.connections // self._core.share)

    # ------------------------------------------------------------------ for connections

    def handle(self, request: Request) -> None:
        """Serve a request whose body is there; raises ProxyError."""
        kind = request.kind
        if self.tracer:
            self.tracer.sample(request)
        try:
            if kind is Kind.CHAT:
                revision = self._revision()
                if request.length <= QUICK and Role.PREFILL not in revision.roles and plain_chat(request.body):
                    self._straight(request, revision.usable[Role.DECODE])
                else:
                    self._chat(request, revision)
            elif kind is Kind.COMPLETIONS:
                self._completions(request)
            elif kind is Kind.THROUGH:
                self._through(request)
            elif kind is Kind.MODELS:
                self._straight(request, self._revision().usable[Role.DECODE])
            else:
                self._own(request, kind)
        except MalformedError as error:
            raise ProxyError(400, str(error)) from None

    def finished(self, request: Request, now: float) -> None:
        """Count a request that has ended, and give back what it held."""
        if request.admitted:
            self.admission.release(request)
        metrics = self._core.metrics
        labels = _LABELS[request.kind]
        if request.status:
            metrics.requests[labels[0], request.status] += 1
            metrics.request_seconds.observe(labels, now - request.started)
            if request.first_byte:
                metrics.first_byte_seconds.observe(labels, request.first_byte - request.started)
        else:
            metrics.cancelled[(request.stage,)] += 1
        if request.trace and self.tracer:
            self.tracer.finish(request)
        if self.log:
            self.log.write(request, now)

    # ------------------------------------------------------------------ ways

    def _chat(self, request: Request, revision: Revision) -> None:
        scanned = self._scan(request)
        if "messages" not in scanned.members:
            raise MalformedError("the body has no messages")
        items = find_items(scanned, request.body, self._core.config.media)
        for item in items:
            if item.url is not None:
                self._core.policy.host(item.url)
        if items:
            if not revision.complete:
                raise no_engine(Role.ENCODE, "without it only text is served")
            self._name(request, items)
        self._walk(request, scanned, items, revision)

    def _completions(self, request: Request) -> None:
        revision = self._revision()
        scanned = self._scan(request)
        if Role.PREFILL in revision.roles:
            self._walk(request, scanned, [], revision)
        else:
            self._straight(request, revision.usable[Role.DECODE])

    def _through(self, request: Request) -> None:
        """Pass on; media are left to the engine that can take them alone."""
        revision = self._revision()
        value = loads(self._punched(request).text)
        if plain(request.body):
            self._straight(request, revision.usable[Role.DECODE])
            return
        refuse_members(value)
        found, urls = media_urls(value)
        hosts = check_urls(urls, self._core.policy)
        engines = revision.usable[revision.consumer if found or urls else Role.DECODE]
        if hosts:
            self._core.spawn(self._checked(request, hosts, engines))
        else:
            self._straight(request, engines)

    async def _checked(self, request: Request, hosts: list[str], engines: Sequence[Endpoint]) -> None:
        try:
            for host in hosts:
                await self._core.policy.check_addresses(host)
        except ProxyError as error:
            request.fail(error)
            return
        if request.connection:
            self._straight(request, engines)

    def _walk(self, request: Request, scanned: Scan, items: list[Item], revision: Revision) -> None:
        Walk(self._core, request, scanned, items, revision=revision, key=_conversation(request, items)).start()

    def _straight(self, request: Request, engines: Sequence[Endpoint]) -> None:
        body, length = request.body, request.length
        whole = body if isinstance(body, bytes) else memoryview(body)[:length]
        Direct(self._core, request, engines, whole).start(_conversation(request, ()) if len(engines) > 1 else 0)

    def _own(self, request: Request, kind: Kind | None) -> None:
        """Answer what is the proxy's own."""
        if kind is Kind.METRICS:
            self._core.spawn(self._metrics(request))
        elif kind is Kind.LIVE:
            request.reply(200, JSON, b"{}")
        else:
            ready = self._core.fleet.ready and not self.admission.draining
            request.reply(200 if ready else 503, JSON, self._core.fleet.status_json(ready=ready))

    async def _metrics(self, request: Request) -> None:
        self.gauge()
        others = await self.other_snapshots() if self.other_snapshots else []
        request.reply(200, TEXT, self._core.metrics.text(others))

    def snapshot(self) -> bytes:
        """Return this process's metrics for another to add up."""
        return self._core.metrics.snapshot()

    def gauge(self) -> None:
        """Set the gauges to what is the case now."""
        core = self._core
        metrics = core.metrics
        metrics.in_flight[()] = self.admission.in_flight
        metrics.in_flight_bytes[()] = core.budget.used
        metrics.connections[()] = len(self.clients)
        metrics.encoder_waiting[()] = core.waiting()
        metrics.engines.clear()
        metrics.engine_in_flight.clear()
        for engine in core.fleet.endpoints():
            metrics.engines[engine.role, engine.state.value] += 1
            metrics.engine_in_flight[engine.role, engine.url] = engine.load

    # ------------------------------------------------------------------ parts

    def _revision(self) -> Revision:
        revision = self._core.fleet.pick()
        if revision is None:
            raise no_engine("suitable")
        return revision

    def _punched(self, request: Request) -> Remainder:
        remainder = punch(request.body, request.length)
        limit = self._core.config.limits.text_size
        if len(remainder.text) > limit:
            raise too_large(len(remainder.text), limit, what="text of the request (its body without media)")
        return remainder

    def _scan(self, request: Request) -> Scan:
        scanned = scan(self._punched(request))
        for name in REFUSED_MEMBERS:
            if any(member.value is not None for member in scanned.members.get(name, ())):
                raise ProxyError(400, f"{name} is not taken from clients", param=name)
        if scanned.value("prompt_embeds") is not None:
            raise ProxyError(400, "embeddings are not taken from clients", param="prompt_embeds")
        return scanned

    def _name(self, request: Request, items: list[Item]) -> None:
        """Give every item the uuid of its content, or of its URL."""
        media = self._core.config.media
        namer = self._core.names.of(request.tenant if media.cache_scope is CacheScope.TENANT else "")
        view = memoryview(request.body)
        nonce = b"" if media.urls_immutable else secrets.token_bytes(16)
        for item in items:
            about = item.about()
            if item.url is not None:
                item.uuid = namer.name(item.url.encode(errors="replace"), b"url\0" + nonce + about)
                continue
            run = item.run
            before = bytes(view[item.source[0] : run.start]) if run else b""
            content = view[run.start : run.end] if run else view[item.source[0] : item.source[1]]
            item.uuid = namer.name(content, b"data\0" + before + b"\0" + about)


def _conversation(request: Request, items: Sequence[Item]) -> int:
    """Return the key of a conversation: what its first bytes say, with the name of the first item among them."""
    body, length = request.body, request.length
    start = max(0, body.find(b'"messages"', 0, length))
    end = min(length, start + PREFIX)
    name = b""
    if items and items[0].start < end:
        end = items[0].start
        name = items[0].uuid.encode()
    return prefix_key(bytes(memoryview(body)[start:end]) + name)
