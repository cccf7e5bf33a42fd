"""The encode stage: each item to the encoder that its content names, and what the encoders report."""

from __future__ import annotations

import asyncio
import json
import uuid as uuids
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from epd_proxy.choice import bounded_rendezvous, content_key
from epd_proxy.config import Role
from epd_proxy.core import Core, engine_error, no_engine
from epd_proxy.endpoints import Endpoint, Revision
from epd_proxy.errors import ProxyError, passed_on
from epd_proxy.items import Item, Modality, copied
from epd_proxy.request import Request
from epd_proxy.rewrite import Piece
from epd_proxy.scanner import Scan
from epd_proxy.slots import QueueFullError
from epd_proxy.upstream import EngineError
from epd_proxy.wire import Encoded, Feature, Wire, WireError
from epd_proxy.wire.base import name_transfers

CARRIED: Final = ("mm_processor_kwargs", "media_io_kwargs", "priority", "session_id")
"""Members of a request that change what an encoder makes of its items, or when."""

MOONCAKE: Final = "ECMooncakeConnector"


@dataclass(slots=True)
class Target:
    """The consumer that encoders push to, where they push: its control channel."""

    consumer_zmq: str


@dataclass(slots=True)
class Embedded:
    """What all encoders reported about the items of a request."""

    features: dict[str, list[Feature]] = field(default_factory=dict)
    """By uuid."""
    handles: dict[str, Any] = field(default_factory=dict)


class EncodeStage:
    """Encodes the items of one request, each distinct one once."""

    def __init__(self, core: Core, request: Request, scan: Scan, body: memoryview, revision: Revision) -> None:
        if revision.wire is None:
            raise no_engine(Role.ENCODE)
        self._core = core
        self._request = request
        self._scan = scan
        self._body = body
        self._revision = revision
        self._wire: Wire = revision.wire
        self._options = self._carried()
        options = scan.value("mm_processor_kwargs")
        self._audio_in_video = bool(isinstance(options, dict) and options.get("use_audio_in_video"))

    async def run(self, items: Iterable[Item], target: Target | None) -> Embedded:
        """Return what was reported; raises ProxyError when an item can't be encoded."""
        distinct = list({item.uuid: item for item in items}.values())
        out = Embedded()
        if target is None and self._wire.sends_uuid:
            await self._shared(distinct, out)
        else:
            await self._all(distinct, target, out)
        return out

    async def _shared(self, items: list[Item], out: Embedded) -> None:
        """Encode what nobody is encoding now, and wait for the rest with whoever does."""
        known = self._core.encoding
        keys = {item.uuid: (self._revision.name, item.uuid, self._options) for item in items}
        mine = [item for item in items if keys[item.uuid] not in known]
        waits = [item for item in items if keys[item.uuid] in known]
        futures: dict[str, asyncio.Future[Encoded]] = {}
        for item in mine:
            futures[item.uuid] = known[keys[item.uuid]] = self._core.loop.create_future()
        try:
            found = Embedded()
            await self._all(mine, None, found)
            for item in mine:
                features = found.features.get(item.uuid, [])
                hashes = {feature.engine_hash for feature in features}
                handles = {name: entry for name, entry in found.handles.items() if name in hashes}
                futures[item.uuid].set_result(Encoded([features], handles))
        except ProxyError as error:
            for future in futures.values():
                future.set_exception(error)
                future.exception()  # nobody need be waiting
            raise
        finally:
            for item in mine:
                known.pop(keys[item.uuid], None)
                futures[item.uuid].cancel()  # of a client that left; who waits starts anew
        out.features |= found.features
        out.handles |= found.handles
        for item in waits:
            await self._join(item, keys[item.uuid], out)

    async def _join(self, item: Item, key: tuple[str, str, bytes], out: Embedded) -> None:
        future = self._core.encoding.get(key)
        if future is None:
            await self._shared([item], out)
            return
        await asyncio.wait([future])
        if future.cancelled():
            await self._shared([item], out)
            return
        self._core.metrics.coalesced[()] += 1
        encoded = future.result()
        out.features[item.uuid] = encoded.features[0]
        out.handles |= encoded.handles

    async def _all(self, items: list[Item], target: Target | None, out: Embedded) -> None:
        """Encode items at their encoders, all at once; the first failure ends the rest."""
        batches = self._batches(items)
        if len(batches) == 1:
            await self._batch(*batches[0], target, out)
            return
        tasks = [self._core.loop.create_task(self._batch(*batch, target, out)) for batch in batches]
        if not tasks:
            return
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def _batches(self, items: list[Item]) -> list[tuple[Endpoint, list[Item]]]:
        encoders = self._revision.usable[Role.ENCODE]
        if not encoders:
            raise no_engine(Role.ENCODE)
        most = self._wire.images_a_request
        out: list[tuple[Endpoint, list[Item]]] = []
        images: dict[int, list[Item]] = {}
        for item in items:
            encoder = bounded_rendezvous(content_key(item.uuid), encoders)
            batch = images.get(encoder.serial)
            if item.modality is not Modality.IMAGE:
                out.append((encoder, [item]))
            elif batch is None or len(batch) >= most:
                images[encoder.serial] = batch = [item]
                out.append((encoder, batch))
            else:
                batch.append(item)
        return out

    async def _batch(self, encoder: Endpoint, items: list[Item], target: Target | None, out: Embedded) -> None:
        """Encode items at one encoder; when it fails, at another, once."""
        tried: list[Endpoint] = []
        attempts = self._core.config.retries.attempts
        while True:
            tried.append(encoder)
            transfers = self._transfers(items) if target else []
            error = await self._try(encoder, items, target, transfers, out)
            if error is None:
                return
            others = [e for e in self._revision.usable[Role.ENCODE] if e not in tried]
            if error.status < 500 or not others or len(tried) >= attempts:
                raise error
            if not self._core.may_retry(Role.ENCODE, str(error.status)):
                raise error
            encoder = bounded_rendezvous(content_key(items[0].uuid), others)

    async def _try(
        self, encoder: Endpoint, items: list[Item], target: Target | None, transfers: list[list[str]], out: Embedded
    ) -> ProxyError | None:
        core = self._core
        timeouts = core.config.timeouts
        slots = core.slots(encoder)
        try:
            await slots.take(timeouts.queue_seconds)
        except QueueFullError as error:
            return ProxyError(503, f"the encoder is busy: {error}", retry_after=2)
        started = core.now()
        try:
            body = self._written(items, target, transfers)
            answer = await core.call(self._request, encoder, body, timeouts.encode_seconds)
        except EngineError as error:
            return engine_error(error)
        finally:
            slots.give()
        core.metrics.stage_seconds.observe(("encode",), core.now() - started)
        if answer.status != 200:
            return passed_on(answer.status, answer.body, "encode")
        try:
            self._read(answer.body, items, transfers, out)
        except (WireError, ValueError, RecursionError) as error:
            return ProxyError(502, f"the encode engine's answer can't be read: {error}")
        return None

    def _read(self, body: bytes, items: list[Item], transfers: list[list[str]], out: Embedded) -> None:
        answer = json.loads(body)
        if not isinstance(answer, dict):
            raise WireError("it is not an object")
        encoded = self._wire.read(answer, [item.uuid for item in items], [item.modality for item in items])
        for number, (item, features) in enumerate(zip(items, encoded.features, strict=True)):
            out.features[item.uuid] = features
            if transfers:
                name_transfers(features, transfers[number])
        out.handles |= encoded.handles

    def _transfers(self, items: list[Item]) -> list[list[str]]:
        """Return fresh transfer ids, one a feature."""
        return [[uuids.uuid4().hex for _ in range(self._feature_count(item))] for item in items]

    def _feature_count(self, item: Item) -> int:
        return 2 if item.modality is Modality.VIDEO and self._audio_in_video else 1

    def _written(self, items: list[Item], target: Target | None, transfers: list[list[str]]) -> list[Piece]:
        out: list[Piece] = [b'{"messages":[{"role":"user","content":[']
        for number, item in enumerate(items):
            if number:
                out.append(b",")
            out += item.written(self._body, with_uuid=self._wire.sends_uuid)
        tail = b']}],"stream":false' + self._wire.encoder_limits + self._options
        if target:
            push = {
                "consumer_zmq": target.consumer_zmq,
                "ec_items": [{"transfer_id": transfer} for ids in transfers for transfer in ids],
            }
            tail += b',"ec_transfer_params":' + json.dumps(push).encode()
        out.append(tail + b"}")
        return out

    def _carried(self) -> bytes:
        """Return the members that go along as the client wrote them."""
        out = b""
        for name in ("model", *CARRIED):
            found = self._scan.members.get(name)
            if found:
                out += b',"%b":%b' % (name.encode(), copied(self._scan, self._body, found[-1].start, found[-1].end))
        return out
