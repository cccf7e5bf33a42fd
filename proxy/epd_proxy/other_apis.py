"""Media in APIs that are not disaggregated: found, checked, and left to an engine that can take them alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from epd_proxy.errors import ProxyError
from epd_proxy.items import EMBEDDING_FIELDS, MEDIA_FIELDS
from epd_proxy.media_policy import MediaPolicy
from epd_proxy.scanner import Buffer

REFUSED_MEMBERS: Final = ("ec_transfer_params", "kv_transfer_params")

_URL_FIELDS: Final = (*MEDIA_FIELDS, "file_url", "source", "image", "video", "audio", "input_image")
_MEDIA_TYPES: Final = frozenset((*MEDIA_FIELDS, "input_image", "input_video", "input_file", "image", "document"))

_AFTER_UNDERSCORE: Final = frozenset((b"ur", b"au", b"em", b"pa", b"pi", b"im"))
"""How the names go on that matter: image_url, input_audio, image_embeds, kv_transfer_params, image_pil, input_image."""

_MANY: Final = 48
"""Underscores beyond which a body is not searched further."""

_OTHER_WORDS: Final = (b"input_", b"source", b'"image', b'"video', b'"audio', b'"document')


def plain_chat(body: Buffer) -> bool:
    """Say, by search, that a chat body names neither media nor anything else that a client must not send.

    A name can be hidden from a search only by escapes of ASCII, and by UTF-16 or UTF-32, in which every ASCII character
    has a zero byte: both are searched for too. A uuid alone names nothing. (`find` and not `in`, which is four times
    slower on bytes; single characters are found at the speed of memory.)
    """
    find = body.find
    at = find(b"_")
    for _ in range(_MANY):
        if at < 0:
            return find(b"\0") < 0 and (find(b"\\") < 0 or find(b"\\u00") < 0)
        if bytes(body[at + 1 : at + 3]) in _AFTER_UNDERSCORE:
            return False
        at = find(b"_", at + 1)
    return False


def plain(body: Buffer) -> bool:
    """Say the same of a body of any API."""
    return plain_chat(body) and not any(body.find(word) >= 0 for word in _OTHER_WORDS)


def refuse_members(value: Any) -> None:
    """Refuse top-level members that would name another request's embeddings or KV blocks. Raises ProxyError."""
    if not isinstance(value, dict):
        raise ProxyError(400, "the body is not a JSON object")
    for name in REFUSED_MEMBERS:
        if value.get(name) is not None:
            raise ProxyError(400, f"{name} is not taken from clients", param=name)
    if value.get("prompt_embeds") is not None:
        raise ProxyError(400, "embeddings are not taken from clients", param="prompt_embeds")


def media_urls(value: Any) -> tuple[bool, list[str]]:
    """Return whether a request carries media anywhere, and their URLs that are not inline; raises ProxyError."""
    urls: list[str] = []
    found = False
    for part in _objects(value):
        kind = part.get("type")
        if kind in EMBEDDING_FIELDS or any(part.get(name) is not None for name in EMBEDDING_FIELDS):
            raise ProxyError(400, "embeddings are not taken from clients; send the media")
        fields = [name for name in _URL_FIELDS if part.get(name) is not None]
        if not fields and kind not in _MEDIA_TYPES:
            continue
        if part.get("uuid") is not None:
            raise ProxyError(400, "uuids of media are not taken from clients in this API")
        found = found or kind in _MEDIA_TYPES or any(name in MEDIA_FIELDS for name in fields)
        urls += (url for name in fields for url in _urls(part[name]))
    return found, urls


def check_urls(urls: list[str], policy: MediaPolicy) -> list[str]:
    """Return the hosts whose addresses are still to be checked; raises ProxyError."""
    return [host for url in dict.fromkeys(urls) if (host := policy.host(url))]


def _urls(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = value.get("url")
    if isinstance(value, str) and (":" in value[:64] or value.startswith("//")):
        yield value


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    stack = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, dict):
            yield top
            stack += top.values()
        elif isinstance(top, list):
            stack += top
