"""The KV blocks of an instance: what a prefill leaves for decode, and how decode comes by it."""

import asyncio
import itertools
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tests.simulator.vllm.http import Request, Response, as_json, failure, listen
from tests.simulator.vllm.options import BOOTSTRAP_PORT, KV_PORT, Options
from tests.simulator.vllm.transfers import MissingError, SideChannel, call

ENGINE = "sim-prefill"


class Blocks:
    """The connector of one instance."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._connector = options.connector("kv")
        self._producer = options.kv.get("kv_role") == "kv_producer"
        self._channel = SideChannel()
        self._numbers = itertools.count()
        self._host = options.environ.get("VLLM_NIXL_SIDE_CHANNEL_HOST", "localhost")
        self._port = int(options.environ.get("VLLM_NIXL_SIDE_CHANNEL_PORT", KV_PORT))

    async def start(self) -> None:
        """Bind what the connector binds. Raises OSError."""
        if self._connector == "NixlConnector":
            await self._channel.listen(self._host, self._port)
        if self._connector == "MooncakeConnector" and self._producer:
            port = int(self._options.environ.get("VLLM_MOONCAKE_BOOTSTRAP_PORT", BOOTSTRAP_PORT))
            await listen(self._bootstrap, self._options.host, port)

    async def leave(self, asked: Mapping[str, Any], prompt: str) -> dict[str, Any] | None:
        """Keep the blocks of a prompt; returns the answer's kv_transfer_params."""
        if self._connector == "MooncakeConnector":
            await self._channel.put(str(asked.get("transfer_id")), prompt)
            return None
        if self._connector == "ExampleConnector" or not asked.get("do_remote_decode"):
            return None
        name = f"chatcmpl-sim-{next(self._numbers)}"
        await self._channel.put(name, prompt)
        return {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_block_ids": [1, 2],
            "remote_engine_id": ENGINE,
            "remote_request_id": name,
            "remote_host": self._host,
            "remote_port": self._port,
            "tp_size": 1,
        }

    async def load(self, params: Mapping[str, Any]) -> str:
        """The prompt whose blocks another instance left. Raises MissingError."""
        if self._connector == "MooncakeConnector":
            address = urlsplit(str(params.get("remote_bootstrap_addr")))
            value = await _get(str(address.hostname), int(address.port or 0), f"/blocks/{params.get('transfer_id')}")
        else:
            name = str(params.get("remote_request_id"))
            value = await call(str(params.get("remote_host")), int(params.get("remote_port") or 0), {"get": name})
        if value is None:
            raise MissingError(f"the prefill has no blocks for {dict(params)}")
        return value

    async def _bootstrap(self, request: Request) -> Response:
        if request.path == "/query":
            return as_json({"0": {"engine_id": ENGINE}})
        try:
            return as_json(await self._channel.wait(request.path.removeprefix("/blocks/")))
        except MissingError as error:
            return failure(404, str(error))


async def _get(host: str, port: int, path: str) -> str | None:
    try:
        async with asyncio.timeout(15):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(f"GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = json.loads(await reader.readexactly(size))
            writer.close()
    except (OSError, ValueError, TimeoutError) as error:
        raise MissingError(f"bootstrap {host}:{port}: {error!r}") from None
    return body if isinstance(body, str) else None
