"""Requests for tests: each with a mark of its own in text and media, so that mixed-up answers are seen."""

from __future__ import annotations

import base64
import itertools
import random
from typing import Any

_numbers = itertools.count(1)


def new_mark() -> str:
    """Return m and eleven digits, never twice."""
    return f"m{next(_numbers):011d}"


def data_url(mark: str, size: int = 6000, seed: int = 1, kind: str = "image/jpeg") -> str:
    """Return a data: URL of about `size` bytes with a mark behind the first 32 characters of base64."""
    data = base64.b64encode(random.Random(seed).randbytes(max(24, size * 3 // 4))).decode()
    return f"data:{kind};base64,{data[:32]}{mark}{data[44:]}"


def image(url: str, **more: Any) -> dict[str, Any]:
    """Return an image part."""
    return {"type": "image_url", "image_url": {"url": url}, **more}


def video(url: str) -> dict[str, Any]:
    """Return a video part."""
    return {"type": "video_url", "video_url": {"url": url}}


def audio(data: str) -> dict[str, Any]:
    """Return an audio part with bare base64."""
    return {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}


def chat(mark: str, *parts: dict[str, Any], tokens: int = 4, stream: bool = False, **more: Any) -> dict[str, Any]:
    """Return a chat request."""
    content: Any = f"{mark} Describe it."
    if parts:
        content = [{"type": "text", "text": content}, *parts]
    messages = [{"role": "user", "content": content}]
    return {"model": "sim", "messages": messages, "stream": stream, "max_tokens": tokens, **more}
