"""The way of a request that needs more than one engine: encode, prefill, decode.

Nothing is sent to the client before decode's success head. Until then an attempt that failed at a consumer is made once
more, elsewhere, and raw: a metadata-only item whose embedding is gone can kill an engine.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

from epd_proxy import log
from epd_proxy.choice import bounded_rendezvous, less_loaded_of_two
from epd_proxy.config import MediaForwarding, Role
from epd_proxy.consume import Consumption
from epd_proxy.core import Core, no_engine
from epd_proxy.direct import elsewhere, told
from epd_proxy.encode import MOONCAKE, Embedded, EncodeStage, Target
from epd_proxy.endpoints import MOONCAKE_PUSH_PORT, Endpoint, Revision
from epd_proxy.errors import ProxyError, passed_on
from epd_proxy.items import Item
from epd_proxy.kv import KvTransfer
from epd_proxy.relay import Relay
from epd_proxy.request import Request
from epd_proxy.rewrite import Piece, set_members, splice
from epd_proxy.scanner import Scan
from epd_proxy.upstream import EngineError, Trouble

_PREFILL_ONLY: Final = {"max_completion_tokens": b"1", "min_tokens": b"0", "stream_options": b"null"}
"""What a prefill is told instead, of what the client said."""


class StageError(Exception):
    """A consumer failed; `cause` is what it said."""

    def __init__(self, role: Role, engine: Endpoint, cause: Exception) -> None:
        super().__init__(str(cause))
        self.role = role
        self.engine = engine
        self.cause = cause


class WalkRelay(Relay):
    """The answer of one attempt; `future` is done once it has begun."""

    def __init__(self, core: Core, request: Request, engine: Endpoint) -> None:
        super().__init__(core, request, engine)
        self.future: asyncio.Future[None] = core.loop.create_future()

    def began(self) -> None:
        """Tell the walk, whose work is done."""
        self.request.work = self
        if not self.future.done():
            self.future.set_result(None)

    def failed(self, error: Exception) -> None:
        """Count, and tell the walk."""
        self.core.metrics.upstream_requests[self.engine.role, told(error)[0]] += 1
        if not self.future.done():
            self.future.set_exception(error)


class Walk:
    """One request on its way."""

    def __init__(
        self, core: Core, request: Request, scan: Scan, items: list[Item], *, revision: Revision, key: int
    ) -> None:
        self._core = core
        self._request = request
        self._scan = scan
        self._items = items
        self._revision = revision
        self._key = key
        self._body = memoryview(request.body)
        self._length = request.length
        self._relay: Relay | None = None
        self._failed: list[Endpoint] = []
        self._transferred = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Go."""
        self._request.work = self
        self._task = self._core.loop.create_task(self._run())

    def abort(self) -> None:
        """The client has left: stop whatever stage it is."""
        if self._task:
            self._task.cancel()
        if self._relay:
            if self._transferred and self._relay.head is None:
                self._core.metrics.orphaned_prefills[()] += 1
            self._relay.abort()
        self._relay = None

    def pause(self) -> None:
        """Nothing is produced for the client yet."""

    def resume(self) -> None:
        """Nothing is produced for the client yet."""

    async def _run(self) -> None:
        try:
            await self._check_urls()
            await self._attempts()
        except ProxyError as error:
            self._request.fail(error)
        except Exception:
            log.exception("request failed", request=self._request.id.decode())
            self._request.fail(ProxyError(500, "the proxy failed; its log says how"))
        finally:
            self._task = None

    async def _check_urls(self) -> None:
        policy = self._core.policy
        hosts = dict.fromkeys(host for item in self._items if item.url is not None and (host := policy.host(item.url)))
        for host in hosts:
            await policy.check_addresses(host)

    async def _attempts(self) -> None:
        raw = "forwarding" if self._core.config.media_forwarding is MediaForwarding.RAW else ""
        for number in range(1, self._core.config.retries.attempts + 1):
            try:
                await self._attempt(raw)
            except StageError as error:
                self._failed.append(error.engine)
                reason, final = told(error.cause)
                again = self._again(error, rewritten=bool(self._items) and not raw)
                if not again or number == self._core.config.retries.attempts:
                    raise final from None
                if not self._core.may_retry(error.role, reason):
                    raise final from None
                if again == "raw":
                    raw = raw or "retry"
            else:
                return

    def _again(self, error: StageError, *, rewritten: bool) -> str:
        """Return "raw" or "same" when the attempt may be made once more, else nothing."""
        cause = error.cause
        others = any(engine not in self._failed for engine in self._revision.usable[error.role])
        if isinstance(cause, EngineError):
            if cause.trouble is Trouble.CLOSED and rewritten:
                return "raw"
            return "same" if others and elsewhere(cause) else ""
        if isinstance(cause, ProxyError) and cause.status == 500 and (rewritten or self._transferred):
            return "raw"  # how vLLM says that an embedding or a block did not come
        return "same" if others and elsewhere(cause) else ""

    async def _attempt(self, raw: str) -> None:
        revision = self._revision
        wire = revision.wire
        if wire is None:
            raise no_engine(Role.DECODE)
        self._transferred = False
        apart = Role.PREFILL in revision.roles and not self._alone()
        consumer = self._choose(Role.PREFILL if apart else Role.DECODE)
        rank = self._rank(consumer)
        takes = Role.ENCODE in revision.roles and consumer.role is revision.consumer
        push = takes and consumer.embeddings_connector == MOONCAKE
        embedded = await self._encode(consumer, rank, push=push) if self._items and takes and raw != "retry" else None
        consumption = Consumption(
            self._items,
            self._body,
            wire,
            embedded,
            raw=raw,
            push=push,
            audio_in_video=self._audio_in_video(),
        )
        params = consumption.handles()
        members = {"ec_transfer_params": params} if params else {}
        if not apart:
            consumption.count(self._core.metrics)
            body = splice(self._body, self._length, consumption.edits() + set_members(self._scan, members))
            await self._decode(consumer, body, _rank_header(consumer, rank))
            return
        kv = await self._prefill(consumer, rank, consumption, members)
        decoder = self._choose(Role.DECODE)
        edits = consumption.edits(raw=kv is None)
        if kv is not None:
            self._transferred = True
            edits += set_members(self._scan, {"kv_transfer_params": kv})
        consumption.count(self._core.metrics)
        await self._decode(decoder, splice(self._body, self._length, edits), b"")

    async def _encode(self, consumer: Endpoint, rank: int, *, push: bool) -> Embedded:
        self._request.enter("encode")
        stage = EncodeStage(self._core, self._request, self._scan, self._body, self._revision)
        target = None
        if push:
            host = f"[{consumer.host}]" if ":" in consumer.host else consumer.host
            target = Target(f"tcp://{host}:{MOONCAKE_PUSH_PORT + rank * consumer.tensor_parallel}")
        return await stage.run(self._items, target)

    async def _prefill(
        self, engine: Endpoint, rank: int, consumption: Consumption, members: dict[str, bytes]
    ) -> bytes | None:
        """Return what decode is to be told, None when no blocks wait for it. Raises StageError."""
        core = self._core
        self._request.enter("prefill")
        transfer = KvTransfer(engine, rank)
        always = {"stream": b"false", "max_tokens": b"1", "kv_transfer_params": transfer.for_prefill(), **members}
        edits = consumption.edits() + set_members(self._scan, always)
        edits += set_members(self._scan, _PREFILL_ONLY, add=False)
        body = splice(self._body, self._length, edits)
        started = core.now()
        try:
            seconds = core.config.timeouts.prefill_seconds
            answer = await core.call(self._request, engine, body, seconds, _rank_header(engine, rank))
        except EngineError as error:
            raise StageError(Role.PREFILL, engine, error) from None
        core.metrics.stage_seconds.observe(("prefill",), core.now() - started)
        if answer.status != 200:
            raise StageError(Role.PREFILL, engine, passed_on(answer.status, answer.body, "prefill"))
        try:
            said: Any = json.loads(answer.body)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise ProxyError(502, "the prefill engine's answer can't be read: it is not a JSON object")
        return transfer.for_decode(said)

    async def _decode(self, engine: Endpoint, body: list[Piece], extra: bytes) -> None:
        """Return once the client's answer has begun; raises StageError before that."""
        core, request = self._core, self._request
        request.enter("decode")
        self._relay = relay = WalkRelay(core, request, engine)
        core.send(
            request,
            engine,
            b"POST " + request.path,
            body,
            sink=relay,
            seconds=core.config.timeouts.first_byte_seconds,
            extra=extra,
        )
        try:
            await relay.future
        except (EngineError, ProxyError) as error:
            raise StageError(engine.role, engine, error) from None
        finally:
            self._relay = None

    def _choose(self, role: Role) -> Endpoint:
        usable: Sequence[Endpoint] = self._revision.usable[role]
        fresh = [engine for engine in usable if engine not in self._failed] if self._failed else usable
        engines = fresh or usable
        if not engines:
            raise no_engine(role)
        if role is Role.DECODE and Role.PREFILL in self._revision.roles:
            return less_loaded_of_two(engines, self._core.pick)
        return bounded_rendezvous(self._key, engines)

    def _rank(self, engine: Endpoint) -> int:
        if engine.data_parallel <= 1:
            return 0
        engine.next_rank = (engine.next_rank + 1) % engine.data_parallel
        return engine.next_rank

    def _alone(self) -> bool:
        """Whether decode must prefill itself: several answers share a prompt, or the prompt's own scores are wanted."""
        value = self._scan.value
        several, prompt = value("n"), value("prompt")
        return (
            # Of several prompts prefill would report one's blocks (0.32 entrypoints/openai/completion/serving.py).
            (isinstance(prompt, list) and len(prompt) > 1 and not isinstance(prompt[0], int))
            or (isinstance(several, int) and several > 1)
            or bool(value("use_beam_search"))
            or value("prompt_logprobs") is not None
            or bool(value("echo"))
        )

    def _audio_in_video(self) -> bool:
        options = self._scan.value("mm_processor_kwargs")
        return bool(isinstance(options, dict) and options.get("use_audio_in_video"))


def _rank_header(engine: Endpoint, rank: int) -> bytes:
    return b"x-data-parallel-rank: %d\r\n" % rank if engine.data_parallel > 1 else b""
