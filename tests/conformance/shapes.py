"""The same requests for real engines and for simulated ones, and what their answers have in common.

A shape is an answer without its values: of JSON the types. What the simulator says must be a part of what vLLM says:
tests that rest on the simulator show nothing where it says more. And what a proxy hands from one engine to another
(`ec_transfer_params`, `kv_transfer_params`) must be equal in shape, since it is passed on whole.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hack.pictures import data_url, png

CHAT = "/v1/chat/completions"
HANDED_ON = ("ec_transfer_params", "kv_transfer_params")
REMOTE_DECODE = {
    "do_remote_decode": True,
    "do_remote_prefill": False,
    "remote_engine_id": None,
    "remote_block_ids": None,
    "remote_host": None,
    "remote_port": None,
}
TOKENS = 12
"""Enough for random weights to say something that is UTF-8."""
TEXT = {"type": "text", "text": "m00000000001 What is it?"}


@dataclass
class Reply:
    """An engine's answer."""

    status: int
    kind: str
    framing: str
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[str]:
        """The data of each server-sent event."""
        blocks = self.body.decode().strip().split("\n\n")
        return [line.removeprefix("data: ") for b in blocks for line in b.splitlines() if line.startswith("data: ")]


class Engines:
    """Engines by role, each asked at its own URL."""

    def __init__(self, urls: dict[str, str], model: str, key: str) -> None:
        self.urls = urls
        self.model = model
        self.key = key

    def ask(self, role: str, path: str, body: Any = None, *, key: str | None = None) -> Reply:
        """Send one request: POST with a body, else GET."""
        address = urlsplit(self.urls[role])
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=300)
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.key if key is None else key}"}
        with contextlib.closing(connection):
            data = None if body is None else json.dumps(body)
            connection.request("GET" if body is None else "POST", path, data, headers)
            answer = connection.getresponse()
            return Reply(
                answer.status,
                (answer.getheader("content-type") or "").partition(";")[0],
                answer.getheader("transfer-encoding") or "",
                answer.read(),
            )

    def chat(self, role: str, *parts: Any, **more: Any) -> Reply:
        """Ask for a chat completion of one user message."""
        body = {"model": self.model, "messages": user(*parts), "stream": False}
        return self.ask(role, CHAT, body | more)


@contextlib.contextmanager
def simulated(model: str, key: str, *options: str) -> Iterator[Engines]:
    """Simulated engines, one of each role."""
    command = [sys.executable, "-m", "tests.simulator", "--encode", "1", "--prefill", "1", "--decode", "1"]
    command += ["--model", model, "--key", key, *options]
    root = Path(__file__).parents[2]
    process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout
        assert process.stdin
        try:
            urls = {role: found[0] for role, found in json.loads(process.stdout.readline()).items()}
            yield Engines(urls, model, key)
        finally:
            process.stdin.close()
            process.wait(30)


def part(seed: int, **more: Any) -> dict[str, Any]:
    """Return an image part as a client sends it."""
    return {"type": "image_url", "image_url": {"url": data_url(png(64, 64, seed))}, **more}


def user(*content: Any) -> list[dict[str, Any]]:
    """Return one message."""
    return [{"role": "user", "content": list(content)}]


BROKEN = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
NO_TYPE = {"image_url": {"url": data_url(png(64, 64, 21))}}
BARE_URL = {"image_url": data_url(png(64, 64, 22))}
INPUT_IMAGE = {"type": "input_image", "image_url": data_url(png(64, 64, 23))}
BASE64 = {"type": "base64", "media_type": "image/png", "data": data_url(png(64, 64, 24)).partition(",")[2]}
THROUGH: dict[str, tuple[int, str, dict[str, Any]]] = {
    "what is no image": (400, CHAT, {"messages": user(BROKEN, TEXT)}),
    "another model with an image": (404, CHAT, {"model": "another", "messages": user(part(20), TEXT)}),
    "another model": (404, CHAT, {"model": "another", "messages": user(TEXT)}),
    "a temperature below zero": (400, CHAT, {"messages": user(part(20), TEXT), "temperature": -3}),
    "more tokens than fit": (400, CHAT, {"messages": user(part(20), TEXT), "max_tokens": 100_000}),
    "untrusted processor options": (400, CHAT, {"messages": user(part(20), TEXT), "mm_processor_kwargs": {"a": 1}}),
    "a part without type": (200, CHAT, {"messages": user(NO_TYPE, TEXT), "max_tokens": 2}),
    "a part without type, the URL bare": (200, CHAT, {"messages": user(BARE_URL, TEXT), "max_tokens": 2}),
    "priority": (200, CHAT, {"messages": user(part(25), TEXT), "max_tokens": 2, "priority": 1}),
    "a stream": (200, CHAT, {"messages": user(part(26), TEXT), "max_tokens": 3, "stream": True}),
    "completions": (200, "/v1/completions", {"prompt": "hello", "max_tokens": 2}),
    "completions as a stream": (200, "/v1/completions", {"prompt": "hello", "max_tokens": 2, "stream": True}),
    "responses": (200, "/v1/responses", {"input": "hello", "max_output_tokens": 2}),
    "responses with an image": (200, "/v1/responses", {"input": user(INPUT_IMAGE), "max_output_tokens": 2}),
    "messages with an image": (
        200,
        "/v1/messages",
        {"messages": user({"type": "image", "source": BASE64}), "max_tokens": 2},
    ),
    "tokens of an image": (200, "/tokenize", {"messages": user(part(27), TEXT)}),
    "an API that this model lacks": (404, "/v1/embeddings", {"input": "hello"}),
}
"""Status, path and body of what clients ask a proxy for."""


def walk(engines: Engines, consumer: str) -> dict[str, Reply]:
    """Lead requests through encoder, prefill and decode by hand; return all answers by name."""
    out: dict[str, Reply] = {}
    out["encode"] = engines.chat("encode", part(1, uuid="a" * 32))
    out["encode three, two equal"] = engines.chat(
        "encode", part(2, uuid="b" * 32), part(3, uuid="c" * 32), part(2, uuid="b" * 32)
    )
    out["encode what is no image"] = engines.chat("encode", BROKEN | {"uuid": "d" * 32})
    out["encode for another model"] = engines.chat("encode", part(4, uuid="e" * 32), model="another")
    handles = out["encode"].json["ec_transfer_params"]
    ((_, entry),) = handles.items()
    metadata = {"type": "image_embeds", "image_embeds": entry["metadata"], "uuid": "a" * 32}
    if consumer == "prefill":
        limits = {"max_tokens": 1, "kv_transfer_params": REMOTE_DECODE}
        out["prefill"] = engines.chat("prefill", metadata, TEXT, ec_transfer_params=handles, **limits)
        left = out["prefill"].json["kv_transfer_params"]
        out["decode"] = engines.chat("decode", metadata, TEXT, kv_transfer_params=left, max_tokens=2)
    else:
        out["decode"] = engines.chat("decode", metadata, TEXT, ec_transfer_params=handles, max_tokens=2)
    out["decode as a stream"] = engines.chat("decode", TEXT, max_tokens=2, stream=True)
    out["decode for another model"] = engines.chat("decode", TEXT, model="another")
    out["decode with a wrong key"] = Engines(engines.urls, engines.model, "wrong").chat("decode", TEXT)
    out |= others(engines, "decode")
    return out


def others(engines: Engines, role: str) -> dict[str, Reply]:
    """Ask for everything that is not a chat completion, and wrongly for chat completions."""
    model = {"model": engines.model}
    said = [{"role": "user", "content": "hello"}]
    requests: dict[str, tuple[str, Any]] = {
        "completions": ("/v1/completions", {"prompt": "hello", "max_tokens": TOKENS}),
        "responses": ("/v1/responses", {"input": "hello", "max_output_tokens": TOKENS}),
        "messages": ("/v1/messages", {"messages": said, "max_tokens": TOKENS}),
        "tokenize": ("/tokenize", {"prompt": "hello"}),
        "detokenize": ("/detokenize", {"tokens": [1, 2]}),
        "count tokens": ("/v1/messages/count_tokens", {"messages": said}),
        "no such path": ("/v1/nothing", {}),
        "messages that are a number": (CHAT, {"messages": 5}),
        "a part that is a number": (CHAT, {"messages": user(3)}),
        "a part that is a string": (CHAT, {"messages": user("hello")}),
    }
    for name in ("completions", "responses", "messages"):
        path, body = requests[name]
        requests[f"{name} as a stream"] = (path, {**body, "stream": True})
    out = {name: engines.ask(role, path, model | body) for name, (path, body) in requests.items()}
    out["a body that is a list"] = engines.ask(role, CHAT, [1])
    return out | {path: engines.ask(role, path) for path in ("/v1/models", "/version", "/health")}


def differences(simulated: Reply, real: Reply) -> list[str]:
    """Return what the simulator says otherwise than vLLM."""
    out = [
        f"{name}: {mine!r}, vLLM {theirs!r}"
        for name in ("status", "kind", "framing")
        if (mine := getattr(simulated, name)) != (theirs := getattr(real, name))
    ]
    if out or not real.body:
        return out
    if real.kind == "text/event-stream":
        return list(_streams(simulated.events, real.events))
    return list(_more(simulated.json, real.json, "answer"))


def _streams(simulated: list[str], real: list[str]) -> Iterator[str]:
    if (simulated[-1] == "[DONE]") != (real[-1] == "[DONE]"):
        yield f"last event {simulated[-1]}, vLLM {real[-1]}"
    known = [json.loads(event) for event in real if event != "[DONE]"]
    for event in map(json.loads, dict.fromkeys(e for e in simulated if e != "[DONE]")):
        found = [list(_more(event, other, "event")) for other in known if event.get("type") == other.get("type")]
        if not found:
            yield f"no event of vLLM's is of type {event.get('type')}"
        elif all(found):
            yield min(found, key=len)[0]


def _more(simulated: Any, real: Any, where: str) -> Iterator[str]:
    """Yield what is in the one and not in the other."""
    if isinstance(simulated, dict) and isinstance(real, dict):
        for name, value in simulated.items():
            if name not in real:
                yield f"{where}.{name} is not vLLM's"
            elif name in HANDED_ON:
                yield from _unequal(value, real[name], f"{where}.{name}")
            else:
                yield from _more(value, real[name], f"{where}.{name}")
    elif isinstance(simulated, list) and isinstance(real, list):
        if simulated and real:
            yield from _more(simulated[0], real[0], f"{where}[0]")
    elif not _alike(simulated, real):
        yield f"{where} is {simulated!r}, vLLM's {real!r}"


def _unequal(simulated: Any, real: Any, where: str) -> Iterator[str]:
    if isinstance(simulated, dict) and isinstance(real, dict):
        for name in sorted(simulated.keys() ^ real.keys()):
            yield f"{where}.{name} is only {'the simulator' if name in simulated else 'vLLM'}'s"
        for name in simulated.keys() & real.keys():
            yield from _unequal(simulated[name], real[name], f"{where}.{name}")
    elif isinstance(simulated, list) and isinstance(real, list):
        for mine, theirs in zip(simulated, real, strict=False):
            yield from _unequal(mine, theirs, f"{where}[]")
    elif not _alike(simulated, real):
        yield f"{where} is {simulated!r}, vLLM's {real!r}"


def _alike(simulated: Any, real: Any) -> bool:
    """Whether values are of one type. vLLM writes null for what it leaves out, and an answer may end for any reason."""
    return type(simulated) is type(real) or None in (simulated, real)
