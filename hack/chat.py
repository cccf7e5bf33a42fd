"""Ask a served model, and read what servers count."""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hack.pictures import data_url

TIMEOUT_SECONDS = 300


class RefusedError(Exception):
    """The server answered with an error; the message holds its status and body."""


@dataclass(frozen=True)
class Answer:
    """What the model said."""

    text: str
    token_ids: tuple[int, ...]
    prompt_tokens: int


def body(model: str, question: str, pictures: Sequence[bytes] = (), tokens: int = 24) -> dict[str, Any]:
    """A chat request whose answer is the same each time: greedy, and of fixed length."""
    parts: list[dict[str, Any]] = [{"type": "image_url", "image_url": {"url": data_url(one)}} for one in pictures]
    return {
        "model": model,
        "messages": [{"role": "user", "content": [*parts, {"type": "text", "text": question}]}],
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "return_token_ids": True,
    }


def ask(url: str, request: dict[str, Any], key: str | None = None) -> Answer:
    """Send a chat request. Raises RefusedError where it is answered with an error."""
    answer = json.loads(_fetch(f"{url}/v1/chat/completions", key, json.dumps(request).encode()))
    [choice] = answer["choices"]
    text = choice["message"]["content"] or ""
    return Answer(text, tuple(choice["token_ids"]), answer["usage"]["prompt_tokens"])


def metric(url: str, name: str, **labels: str) -> float:
    """The sum of a Prometheus metric's samples that have these labels; 0 if there are none."""
    total = 0.0
    for line in _fetch(f"{url}/metrics").decode().splitlines():
        sample = re.fullmatch(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)", line)
        if sample and sample[1] == name:
            found = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample[2] or ""))
            if labels.items() <= found.items():
                total += float(sample[3])
    return total


def _fetch(url: str, key: str | None = None, data: bytes | None = None) -> bytes:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
            return content
    except urllib.error.HTTPError as error:
        raise RefusedError(f"{url}: {error.code}: {error.read().decode(errors='replace')[:400]}") from error
