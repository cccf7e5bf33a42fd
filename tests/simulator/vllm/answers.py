"""What the simulated model says: words made from everything that it was shown. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from tests.simulator import dialect


def text_digest(messages: Sequence[Mapping[str, Any]]) -> str:
    """Of the roles and texts of a conversation, in order."""
    total = hashlib.sha256()
    for message in messages:
        total.update(str(message.get("role")).encode())
        content = message.get("content")
        for text in [content] if isinstance(content, str) else [p.get("text") for p in content or ()]:
            if isinstance(text, str):
                total.update(b"\0" + text.encode())
    return total.hexdigest()


def prompt_digest(text: str, media: Sequence[str]) -> str:
    """Of a text's digest and the digests of its media, in order: what a KV cache stands for."""
    return hashlib.sha256("\0".join((text, *media)).encode()).hexdigest()


def words(prompt: str, count: int) -> list[str]:
    """The answer: `count` tokens, each a word that begins with a space but the first."""
    made = [hashlib.sha256(f"{prompt} {number}".encode()).hexdigest()[:6] for number in range(count)]
    return [word if number == 0 else f" {word}" for number, word in enumerate(made)]


def expected(request: Mapping[str, Any]) -> str:
    """The whole answer to a chat request whose media are still in it."""
    parts = [p for m in request["messages"] if isinstance(m.get("content"), list) for p in m["content"]]
    media = [dialect.content_of(part, "").digest for part in parts if any(kind in part for kind in dialect.MEDIA)]
    return "".join(words(prompt_digest(text_digest(request["messages"]), media), request["max_tokens"]))
