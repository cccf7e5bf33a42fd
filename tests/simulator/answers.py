"""What engines answer, path by path, as far as a client or a proxy looks at it.

`conformance/test_serving.py` holds every field here to what the real vLLM says to the same requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MODEL = "sim"
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
ANTHROPIC_USAGE = {"input_tokens": 1, "output_tokens": 1}


def error(status: int, message: str, param: str | None = None) -> bytes:
    """Return an error in vLLM's shape; its server says otherwise that a path or a key is unknown."""
    if status == 401:
        return b'{"error": "Unauthorized"}'
    kinds = {400: "BadRequestError", 404: "NotFoundError"}
    kind = kinds.get(status, "InternalServerError" if status >= 500 else "BadRequestError")
    return json.dumps({"error": {"message": message, "type": kind, "param": param, "code": status}}).encode()


NOT_FOUND = b'{"detail": "Not Found"}'


def models(name: str) -> bytes:
    """Return the list of served models."""
    return json.dumps(
        {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "vllm", "max_model_len": 2048}]}
    ).encode()


def completion(text: str, path: str = "/v1/chat/completions") -> dict[str, Any]:
    """Return a whole answer."""
    if path == "/v1/completions":
        choice: dict[str, Any] = {"index": 0, "text": text, "finish_reason": "length"}
        return {"id": "cmpl-s", "object": "text_completion", "model": MODEL, "choices": [choice], "usage": USAGE}
    if path == "/v1/responses":
        content = [{"type": "output_text", "text": text, "annotations": []}]
        message = {"id": "msg_s", "type": "message", "role": "assistant", "content": content}
        return {"id": "resp_s", "object": "response", "model": MODEL, "output": [message], "usage": ANTHROPIC_USAGE}
    if path == "/v1/messages":
        parts = [{"type": "text", "text": text}]
        said = {"id": "chatcmpl-s", "type": "message", "role": "assistant", "content": parts}
        return {**said, "model": MODEL, "stop_reason": "max_tokens", "usage": ANTHROPIC_USAGE}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "length"}
    return {"id": "chatcmpl-s", "object": "chat.completion", "model": MODEL, "choices": [choice], "usage": USAGE}


def other(path: str) -> bytes | None:
    """Return the answer of an API that generates nothing, None where there is no such path."""
    known: dict[str, dict[str, Any]] = {
        "/tokenize": {"count": 1, "max_model_len": 2048, "tokens": [1], "token_strs": None},
        "/detokenize": {"prompt": "t"},
        "/v1/messages/count_tokens": {"input_tokens": 1},
    }
    return json.dumps(known[path]).encode() if path in known else None


def events(path: str, text: str, count: int) -> Iterator[bytes]:
    """Yield the events of a stream that says `text` `count` times, each with its end."""
    for event in _said(path, text, count):
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps(event)}\n\n".encode()
    if path in ("/v1/chat/completions", "/v1/completions"):
        yield b"data: [DONE]\n\n"


def _said(path: str, text: str, count: int) -> Iterator[dict[str, Any]]:
    head: dict[str, Any] = {"id": "chatcmpl-s", "object": "chat.completion.chunk", "model": MODEL}
    if path == "/v1/messages":
        yield {"type": "message_start", "message": {**completion("", path), "content": [], "stop_reason": None}}
        yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
        for _ in range(count):
            yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        yield {"type": "content_block_stop", "index": 0}
        yield {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": ANTHROPIC_USAGE}
        yield {"type": "message_stop"}
    elif path == "/v1/responses":
        yield {"type": "response.created", "response": {**completion("", path), "output": [], "usage": None}}
        for _ in range(count):
            yield {"type": "response.output_text.delta", "item_id": "msg_s", "content_index": 0, "delta": text}
        yield {"type": "response.completed", "response": completion(text, path)}
    elif path == "/v1/completions":
        head = {"id": "cmpl-s", "object": "text_completion", "model": MODEL}
        for _ in range(count):
            yield {**head, "choices": [{"index": 0, "text": text, "finish_reason": None}]}
    else:
        for _ in range(count):
            yield {**head, "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
