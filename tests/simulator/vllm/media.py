"""The embeddings of an instance: what an encoder leaves, and how a consumer comes by it."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tests.simulator import dialect
from tests.simulator.dialect import Content
from tests.simulator.vllm.options import EC_PORT, Options
from tests.simulator.vllm.transfers import Files, MissingError, SideChannel, call

FOLDED = ("mm_processor_kwargs", "media_io_kwargs")
"""Options of a request that are part of the engine's own key."""


class DeadEngineError(Exception):
    """What kills a real engine: metadata of something that nobody encoded."""


class Embeddings:
    """The connector of one instance."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._connector = options.connector("ec")
        self._files = Files(str(options.extra("ec").get("shared_storage_path", "/tmp")), "encoder_cache.safetensors")
        self._channel = SideChannel()
        self._host = options.environ.get("VLLM_EC_SIDE_CHANNEL_HOST", "localhost")
        self._port = int(options.environ.get("VLLM_EC_SIDE_CHANNEL_PORT", EC_PORT))

    async def start(self) -> None:
        """Bind what the connector binds. Raises OSError."""
        if (
            self._connector == "ECCPUConnector"
            and self._options.encoder
            and self._options.extra("ec").get("ec_enable_nixl")
        ):
            await self._channel.listen(self._host, self._port)
        if self._connector == "ECMooncakeConnector" and not self._options.encoder:
            await self._channel.listen(str(self._options.ec["ec_ip"]), int(self._options.ec["ec_port"]))

    async def encode(self, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """Encode all media of a request; returns what the encoder reports."""
        folded = _folded(request)
        contents = [_content(part) for part in _media(request)]
        handed: dict[str, Any] = request.get("ec_transfer_params") or {}
        transfers = [str(item.get("transfer_id")) for item in handed.get("ec_items") or ()]
        for number, content in enumerate(contents):
            key = content.engine_hash(folded)
            if self._connector == "ECExampleConnector":
                self._files.put(key, content.digest)
            elif self._connector == "ECMooncakeConnector":
                target = urlsplit(str(handed["consumer_zmq"]))
                assert target.hostname is not None
                assert target.port is not None
                await call(target.hostname, target.port, {"put": transfers[number], "value": content.digest})
            await self._channel.put(key, content.digest)
        quiet = self._connector == "ECCPUConnector" and not self._options.extra("ec").get("ec_enable_nixl")
        report = None if quiet else dialect.report(self._options.minor, contents, folded, self._connector, empty=False)
        for key, entry in (report or {}).items():
            if isinstance(entry, dict) and "peer_host" in entry:
                entry |= {"peer_host": self._host, "peer_port": self._port}
            if self._connector == "ECMooncakeConnector" and isinstance(entry, dict):
                numbers = [number for number, content in enumerate(contents) if content.engine_hash(folded) == key]
                entry["transfer_id"] = transfers[numbers[0]]
        return report

    async def digests(self, request: Mapping[str, Any]) -> list[str]:
        """Digests of all media, encoded here or fetched. Raises MissingError, DeadEngineError."""
        folded = _folded(request)
        params: dict[str, Any] = request.get("ec_transfer_params") or {}
        found = []
        for part in _parts(request):
            if any(part.get(kind) is not None for kind in dialect.MEDIA):
                found.append(_content(part).digest)
            elif str(part.get("type")).endswith("_embeds"):
                key = Content(str(part.get("uuid")), "", "", {}).engine_hash(folded)
                found.append(await self._fetch(key, params))
        return found

    async def _fetch(self, key: str, params: Mapping[str, Any]) -> str:
        if self._connector == "ECCPUConnector":
            handle = params.get(key) or {}
            if "peer_host" not in handle:
                raise MissingError(f"no announcement of {key}")
            if self._options.minor >= "0.32" and "shape" not in handle:
                raise MissingError(f"the announcement of {key} has no shape")
            value = await call(str(handle["peer_host"]), int(handle["peer_port"]), {"get": key})
            if value is None:
                raise MissingError(f"{key} was evicted")
            return value
        if self._connector == "ECMooncakeConnector":
            items = [item for item in params.get("ec_items") or () if item.get("mm_hash") in (key, None)]
            if not items:
                raise MissingError(f"no transfer of {key}")
            return await self._channel.wait(str(items[0]["transfer_id"]))
        value = self._files.get(key) if self._connector == "ECExampleConnector" else None
        if value is None:
            raise DeadEngineError(f"an item of {key} has no embedding and no media")
        return value


def _folded(request: Mapping[str, Any]) -> str:
    return "".join(json.dumps(request[name]) for name in FOLDED if request.get(name))


def _parts(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    contents = [message.get("content") for message in request["messages"]]
    return [p for content in contents if isinstance(content, list) for p in content if isinstance(p, dict)]


def _media(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [part for part in _parts(request) if any(part.get(kind) is not None for kind in dialect.MEDIA)]


def _content(part: dict[str, Any]) -> Content:
    content = dialect.content_of(part, str(part.get("uuid") or ""))
    content.uuid = content.uuid or content.digest
    return content
