"""One simulated `vllm serve`: what it answers in its role."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

from tests.simulator.vllm.answers import prompt_digest, text_digest, words
from tests.simulator.vllm.blocks import Blocks
from tests.simulator.vllm.http import Request, Response, as_json, failure
from tests.simulator.vllm.log import say
from tests.simulator.vllm.media import DeadEngineError, Embeddings
from tests.simulator.vllm.options import Options
from tests.simulator.vllm.transfers import MissingError

GUARDED = "/v1/"
"""Paths that ask for the key; vLLM leaves the others open."""


class Instance:
    """An instance that has started."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.embeddings = Embeddings(options)
        self.blocks = Blocks(options)
        self.running = 0
        self.finished = 0
        self.draining = False
        self.dead = False

    async def handle(self, request: Request) -> Response:
        """Answer one request."""
        path = request.path.partition("?")[0]
        if path in ("/health", "/ping"):
            return Response(503 if self.dead else 200, kind="")
        if path == "/version":
            return as_json({"version": self.options.release})
        if path == "/metrics":
            return Response(body=self._metrics().encode(), kind="text/plain; version=0.0.4")
        if (
            self.options.key
            and path.startswith(GUARDED)
            and request.headers.get("authorization") != f"Bearer {self.options.key}"
        ):
            return as_json({"error": "Unauthorized"}, 401)
        if path == "/v1/models":
            model = {"id": self.options.served_name, "object": "model", "owned_by": "vllm", "root": self.options.model}
            return as_json({"object": "list", "data": [model]})
        if (request.method, path) != ("POST", "/v1/chat/completions"):
            return as_json({"detail": "Not Found"}, 404)
        return await self._chat(request)

    async def _chat(self, request: Request) -> Response:
        try:
            asked = json.loads(request.body)
            text_digest(asked["messages"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return failure(400, f"not a chat request: {error!r}")
        if asked.get("model") not in (None, self.options.served_name):
            return failure(404, f"The model `{asked['model']}` does not exist.")
        if self.draining:
            return failure(500, "cannot schedule new futures after shutdown")
        self.running += 1
        streams = False
        try:
            response = await (self._encode(asked) if self.options.encoder else self._generate(asked))
            streams = response.events is not None
        except MissingError as error:
            say(f"ERROR {error}")
            return failure(500, "Internal server error")
        except DeadEngineError as error:
            self._die(str(error))
            return failure(500, "EngineCore encountered an issue. See stack trace (above) for the root cause.")
        else:
            return response
        finally:
            if not streams:
                self._done()

    async def _encode(self, asked: dict[str, Any]) -> Response:
        await asyncio.sleep(self.options.milliseconds("EPD_SIM_ENCODE_MS"))
        report = await self.embeddings.encode(asked)
        return as_json({**self._completion("", [], "stop"), "ec_transfer_params": report})

    async def _generate(self, asked: dict[str, Any]) -> Response:
        params = asked.get("kv_transfer_params") or {}
        if params.get("do_remote_prefill"):
            prompt = await self.blocks.load(params)
        else:
            await asyncio.sleep(self.options.milliseconds("EPD_SIM_PREFILL_MS"))
            prompt = prompt_digest(text_digest(asked["messages"]), await self.embeddings.digests(asked))
        count = asked.get("max_completion_tokens") or asked.get("max_tokens") or 16
        said = words(prompt, count)
        if asked.get("stream"):
            return Response(kind="text/event-stream; charset=utf-8", events=self._events(said))
        await asyncio.sleep(count * self.options.milliseconds("EPD_SIM_TOKEN_MS"))
        left = await self.blocks.leave(params, prompt) if params.get("do_remote_decode") else None
        return as_json({**self._completion("".join(said), said, "length"), "kv_transfer_params": left})

    async def _events(self, said: list[str]) -> AsyncIterator[bytes]:
        try:
            for number, word in enumerate(said):
                await asyncio.sleep(self.options.milliseconds("EPD_SIM_TOKEN_MS"))
                last = number == len(said) - 1
                choice = {"index": 0, "delta": {"content": word}, "finish_reason": "length" if last else None}
                chunk = {**self._head("chat.completion.chunk"), "choices": [choice]}
                yield b"data: " + json.dumps(chunk).encode() + b"\n\n"
            yield b"data: [DONE]\n\n"
        finally:
            self._done()

    def _completion(self, text: str, said: list[str], reason: str) -> dict[str, Any]:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": reason,
            "token_ids": [int(word.strip(), 16) for word in said],
        }
        usage = {"prompt_tokens": 1, "completion_tokens": len(said), "total_tokens": 1 + len(said)}
        return {**self._head("chat.completion"), "choices": [choice], "usage": usage}

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self.finished}", "object": kind, "created": 0, "model": self.options.served_name}

    def _metrics(self) -> str:
        label = f'{{model_name="{self.options.served_name}",engine="0"}}'
        return f"vllm:request_success_total{label} {self.finished}\nvllm:num_requests_running{label} {self.running}\n"

    def _done(self) -> None:
        self.running -= 1
        self.finished += 1

    def _die(self, why: str) -> None:
        """End as an API server does whose engine is dead."""
        say(f"EngineDeadError: {why}")
        self.dead = True
        asyncio.get_running_loop().call_later(0.2, os._exit, 1)

    async def drain(self) -> None:
        """Let what runs end, for as long as --shutdown-timeout says."""
        self.draining = True
        try:
            async with asyncio.timeout(self.options.shutdown_timeout):
                while self.running:  # noqa: ASYNC110  the end of a request sets no event
                    await asyncio.sleep(0.02)
        except TimeoutError:
            say(f"WARNING {self.running} requests did not end in time")
