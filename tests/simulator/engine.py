"""Simulated vLLM engines: what a proxy sees of them, and what it did wrong."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass, field
from typing import Any

from tests.simulator import answers, dialect
from tests.simulator.answers import MODEL, NOT_FOUND, completion, error
from tests.simulator.dialect import Content
from tests.simulator.faults import Fault, Mode
from tests.simulator.http import Connection, Exchange

PREFILLED = ("/v1/chat/completions", "/v1/completions")
GENERATING = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages")


@dataclass(slots=True)
class Received:
    """A request that an engine got."""

    role: str
    engine: int
    exchange: Exchange

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.exchange.body)

    @property
    def items(self) -> list[dict[str, Any]]:
        """The content parts that are not text."""
        parts = [p for m in self.json["messages"] if isinstance(m["content"], list) for p in m["content"]]
        return [p for p in parts if isinstance(p, dict) and p.get("type") != "text"]


@dataclass
class World:
    """What the engines of one deployment share: caches, records, faults."""

    minor: str = "0.33"
    embeddings_connector: str = "ECCPUConnector"
    kv_connector: str = "NixlConnector"
    roles: frozenset[str] = frozenset()
    key: str = ""
    contents: dict[str, Content] = field(default_factory=dict)
    """By uuid."""
    hashes: dict[str, str] = field(default_factory=dict)
    """Uuid by engine hash."""
    prefills: dict[str, str] = field(default_factory=dict)
    """Mark by remote request id."""
    transfers: list[str] = field(default_factory=list)
    """Transfer ids that encoders were given."""
    violations: list[str] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    keep: bool = True
    """Keep what was received, for a test to look at."""
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def release(self) -> int:
        """The minor number."""
        return int(self.minor.partition(".")[2])

    @property
    def consumer(self) -> str:
        """The role that takes embeddings."""
        return "prefill" if "prefill" in self.roles else "decode"

    def by(self, role: str) -> list[Received]:
        """What the engines of a role got to generate from."""
        return [r for r in self.received if r.role == role]

    def violation(self, what: str) -> None:
        """Note what a proxy must never do."""
        self.violations.append(what)


class Engine:
    """One engine."""

    def __init__(self, world: World, role: str, number: int) -> None:
        self.world = world
        self.role = role
        self.number = number
        self.port = 0
        self.healthy = True
        self.unanswered: set[str] = set()
        """Paths that get no answer, of those that a proxy asks for itself."""
        self.model = MODEL
        self.connections: set[Connection] = set()
        self._server: asyncio.AbstractServer | None = None

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Listen, on the port it had before if it had one."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._handle, self.connections), "127.0.0.1", self.port, reuse_address=True
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """End as a process does that is killed."""
        if self._server:
            self._server.close()
            self._server = None
        for connection in list(self.connections):
            connection.transport.abort()
        await asyncio.sleep(0)

    # ------------------------------------------------------------------ requests

    def _handle(self, exchange: Exchange) -> None:
        path = exchange.path.partition("?")[0]
        world = self.world
        if path in self.unanswered:
            return
        if path == "/health":
            exchange.answer(200 if self.healthy else 503, b"", kind="")
        elif path == "/query":  # Mooncake's bootstrap server, which has a port of its own
            exchange.answer(200, b'{"0": {"engine_id": "engine-0"}, "1": {"engine_id": "engine-1"}}')
        elif path == "/version":
            exchange.answer(200, json.dumps({"version": f"{world.minor}.0"}).encode())
        elif world.key and exchange.headers.get("authorization") != f"Bearer {world.key}":
            exchange.answer(401, error(401, "Unauthorized"))
        elif path == "/v1/models":
            exchange.answer(200, answers.models(self.model))
        elif exchange.method == "POST":
            exchange.task = asyncio.get_running_loop().create_task(self._post(exchange, path))
        else:
            exchange.answer(404, NOT_FOUND)

    async def _post(self, exchange: Exchange, path: str) -> None:
        world = self.world
        if world.keep:
            world.received.append(Received(self.role, self.number, exchange))
        served = exchange.connection.served
        fault = next((f for f in world.faults if f.applies(self.role, self.number, exchange.body, served)), None)
        mode = fault.mode if fault else None
        argument = fault.argument if fault else 0
        if mode is Mode.STATUS:
            exchange.answer(argument, error(argument, "simulated failure"))
        elif mode in (Mode.CLOSE, Mode.STALE):
            exchange.close()
        elif mode is Mode.GARBAGE:
            exchange.write(b"\x00\x01 this is not HTTP\r\n\r\n")
        elif mode is Mode.NOT_JSON:
            exchange.answer(200, b"<html>no</html>")
        elif mode is not Mode.HANG:
            if mode is Mode.SLOW:
                await asyncio.sleep(argument / 1000)
            await self._answer(exchange, path, fault)

    async def _answer(self, exchange: Exchange, path: str, fault: Fault | None) -> None:
        try:
            request = read(exchange.body, chat=path == "/v1/chat/completions")
        except (ValueError, RecursionError) as problem:
            exchange.answer(400, error(400, f"body is not a request: {problem}"))
            return
        name = request.get("model", self.model)
        other = answers.other(path)
        if other is None and path not in GENERATING:
            exchange.answer(404, NOT_FOUND)
        elif name != self.model:
            exchange.answer(404, error(404, f"The model `{name}` does not exist.", "model"))
        elif other is not None:
            exchange.answer(200, other)
        elif any(dialect.unreadable(part[kind]) for kind, part in media_of(request)):
            exchange.answer(400, error(400, "Failed to load image: cannot identify image file"))
        elif self.role == "encode":
            self._encode(exchange, request, fault)
        elif self.role == "prefill" and path in PREFILLED:
            self._prefill(exchange, path, request, fault)
        else:
            await self._decode(exchange, path, request, fault)

    def _encode(self, exchange: Exchange, request: dict[str, Any], fault: Fault | None) -> None:
        world = self.world
        if request.get("stream"):
            world.violation("encoder asked to stream")
        if world.release >= 28 and "max_tokens" in request:
            world.violation("encoder given max_tokens")
        items = media_of(request)
        if not items:
            world.violation("encoder asked without media")
        if world.release < 31 and len(items) > 1:
            world.violation("encoder given several items")
        if any(dialect.MODALITY[kind] != "image" for kind, _ in items) and len(items) > 1:
            world.violation("video or audio not alone")
        options = "".join(json.dumps(request[k]) for k in ("mm_processor_kwargs", "media_io_kwargs") if request.get(k))
        contents = []
        for _, part in items:
            content = dialect.content_of(part, str(part.get("uuid", "")))
            known = world.contents.get(content.uuid)
            if content.uuid and known and known.digest != content.digest:
                world.violation("one uuid for two contents")
            world.contents[content.uuid] = content
            world.hashes[content.engine_hash(options)] = content.uuid
            contents.append(content)
            if dialect.hears(part, request):
                contents.insert(0, dialect.audio_of(content))
        transfers = self._transfers(request, len(contents))
        empty = fault is not None and fault.mode is Mode.NO_METADATA
        params = None
        if fault is None or fault.mode is not Mode.NO_HANDLES:
            params = dialect.report(
                world.minor, contents, options, world.embeddings_connector, empty=empty, transfers=transfers
            )
        exchange.answer(200, json.dumps({**completion(""), "ec_transfer_params": params}).encode())

    def _transfers(self, request: dict[str, Any], count: int) -> list[str]:
        """Return the transfer ids that a Mooncake encoder is given; check what it is told about where to push."""
        world = self.world
        if world.embeddings_connector != "ECMooncakeConnector":
            return []
        params = request.get("ec_transfer_params") or {}
        ids = [item.get("transfer_id") for item in params.get("ec_items", ())]
        if not str(params.get("consumer_zmq", "")).startswith("tcp://"):
            world.violation("encoder not told where to push")
        if len(ids) != count or any(i in world.transfers for i in ids):
            world.violation("transfer ids missing or used twice")
        world.transfers += ids
        return ids

    def _prefill(self, exchange: Exchange, path: str, request: dict[str, Any], fault: Fault | None) -> None:
        world = self.world
        mark = self._consume(request, handles=True)
        kv = request.get("kv_transfer_params") or {}
        if kv.get("do_remote_decode") is not True:
            world.violation("prefill without do_remote_decode")
        if request.get("stream") or request.get("stream_options"):
            world.violation("prefill asked to stream")
        if request.get("max_tokens") != 1 or request.get("max_completion_tokens", 1) != 1:
            world.violation("prefill not limited to one token")
        if request.get("min_tokens", 0) > 1 or request.get("n", 1) != 1:
            world.violation("prefill with min_tokens or n")
        name = f"p-{next(world.numbers)}"
        answer = completion("t", path)
        if world.kv_connector == "MooncakeConnector":
            world.prefills[str(kv.get("transfer_id"))] = mark
        elif world.kv_connector != "ExampleConnector" and (fault is None or fault.mode is not Mode.NO_HANDLES):
            world.prefills[name] = mark
            answer["kv_transfer_params"] = {
                "do_remote_prefill": True,
                "do_remote_decode": False,
                "remote_engine_id": "engine-p",
                "remote_request_id": name,
                "remote_block_ids": [[1, 2]],
                "remote_host": "127.0.0.1",
                "remote_port": 5600,
                "remote_num_tokens": 20,
                "remote_prefill_cached_tokens": 0,
                "remote_blocks_expiry_time": None,
                "transfer_mode": "pull",
                **dict.fromkeys(("tp_size", "dcp_size", "pp_size"), 1),
            }
        exchange.answer(200, json.dumps(answer).encode())

    async def _decode(self, exchange: Exchange, path: str, request: dict[str, Any], fault: Fault | None) -> None:
        world = self.world
        mark = self._consume(request, handles=world.consumer == self.role)
        kv = request.get("kv_transfer_params")
        if kv:
            name = str(kv.get("remote_request_id") or kv.get("transfer_id"))
            if world.prefills.get(name) != mark or kv.get("do_remote_prefill") is not True:
                world.violation("kv_transfer_params of another request")
        elif self.role == "decode" and world.consumer == "prefill" and any_embeds(request):
            world.violation("metadata-only item without KV to load")
        mode = fault.mode if fault else None
        if not request.get("stream"):
            body = json.dumps(completion(padded(mark, request), path)).encode()
            if mode is Mode.DIE:
                exchange.answer(200, body[: len(body) // 2], length=len(body))
                exchange.close()
            else:
                exchange.answer(200, body)
            return
        await self._stream(exchange, path, request, mark, fault)

    async def _stream(
        self, exchange: Exchange, path: str, request: dict[str, Any], mark: str, fault: Fault | None
    ) -> None:
        mode = fault.mode if fault else None
        argument = fault.argument if fault else 0
        limits = ("max_tokens", "max_completion_tokens", "max_output_tokens")
        count = next((request[name] for name in limits if request.get(name)), 16)
        exchange.begin_chunks()
        for number, event in enumerate(answers.events(path, padded(mark, request), count)):
            if number == argument and mode in (Mode.DIE, Mode.TEAR):
                if mode is Mode.TEAR:
                    exchange.write(b"%x\r\n%b" % (len(event), event[:20]))
                await asyncio.sleep(0.01)
                exchange.close()
                return
            if number == argument and mode is Mode.STALL:
                return
            if mode is Mode.SLOW:
                await asyncio.sleep(argument / 1000)
            await exchange.connection.room.wait()
            if not exchange.open:
                return
            exchange.chunk(event)
        exchange.chunk(b"")

    # ------------------------------------------------------------------ consuming

    def _consume(self, request: dict[str, Any], *, handles: bool) -> str:
        """Check the items of a prefill or decode request; return its mark."""
        world = self.world
        mark = mark_of(request)
        params = request.get("ec_transfer_params") or {}
        uuids = {world.hashes[name] for name in params if name in world.hashes}
        for part in parts_of(request):
            kind = str(part.get("type"))
            if not kind.endswith("_embeds"):
                continue
            content = world.contents.get(str(part.get("uuid")))
            if content is None:
                world.violation("metadata of a uuid that no encoder saw: this kills a real engine")
                continue
            for feature in [content, *([dialect.audio_of(content)] if dialect.hears(part, request) else [])]:
                try:
                    got = dialect.received(world.minor, part, feature.modality)
                except (ValueError, KeyError) as problem:
                    world.violation(f"metadata that can't be read: {problem}")
                    continue
                if got != dialect.vectors(feature):
                    world.violation(f"metadata other than reported: {got}")
            if content.mark and mark and content.mark != mark:
                world.violation("an embedding of another request")
            if handles and world.release >= 30 and content.uuid not in uuids:
                world.violation("no handle for an embedding")
            if handles and world.embeddings_connector == "ECMooncakeConnector":
                named = [item.get("transfer_id") for item in params.get("ec_items", ())]
                if not named or any(name not in world.transfers for name in named):
                    world.violation("consumer not told the transfer ids")
        return mark


def padded(mark: str, request: dict[str, Any]) -> str:
    """Return what is said: the mark and as much more as a request wants in `padding`, which is no field of vLLM's."""
    return mark + "." * int(request.get("padding", 0))


def read(body: bytes, *, chat: bool) -> dict[str, Any]:
    """Return a request; raises ValueError for what vLLM refuses."""
    request = json.loads(body)
    if not isinstance(request, dict):
        raise ValueError("not an object")  # noqa: TRY004  one kind of error for the caller
    if chat:
        check_messages(request)
    return request


def check_messages(request: dict[str, Any]) -> None:
    """Refuse messages that vLLM refuses; raises ValueError."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        raise ValueError("messages are not a list of objects")
    for message in messages:
        content = message.get("content")
        if isinstance(content, list) and not all(isinstance(p, dict) for p in content):
            raise ValueError("a content part is not an object")


def parts_of(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the content parts that are objects."""
    messages = request.get("messages") or ()
    contents = [m.get("content") for m in messages if isinstance(m, dict)]
    return [p for content in contents if isinstance(content, list) for p in content if isinstance(p, dict)]


def media_of(request: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the media parts with the field that makes them such."""
    return [(kind, part) for part in parts_of(request) for kind in dialect.MEDIA if part.get(kind) is not None]


def any_embeds(request: dict[str, Any]) -> bool:
    """Say whether a part is metadata only."""
    return any(str(part.get("type")).endswith("_embeds") for part in parts_of(request))


def mark_of(request: dict[str, Any]) -> str:
    """Return the mark at the start of the text: m and eleven digits."""
    texts: list[Any] = [request.get("prompt"), request.get("input")]
    for message in request.get("messages") or ():
        content = message.get("content") if isinstance(message, dict) else None
        texts += [content] if isinstance(content, str) else []
        texts += [p if isinstance(p, str) else p.get("text") for p in content] if isinstance(content, list) else []
    found = [t[:12] for t in texts if isinstance(t, str) and t[:1] == "m" and t[1:12].isdigit()]
    return found[0] if found else "no-mark"
