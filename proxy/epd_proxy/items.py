"""Media items of a chat request: which parts they are, what they say, how they are written anew.

vLLM finds media by field rather than by type (0.32 entrypoints/chat_utils.py): a part without a type, and one of type
text that has a uuid, may carry `image_url`. So the fields are looked at first here. An item is never passed on as the
client wrote it: it is put together again from the values that were looked at, so that no other reader of the same bytes
finds something else in it, and always with the proxy's own uuid.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from epd_proxy.config import Media
from epd_proxy.errors import ProxyError
from epd_proxy.scanner import Buffer, Part, Run, Scan, Span, spans

MEDIA_FIELDS: Final = ("image_url", "video_url", "audio_url", "input_audio")
EMBEDDING_FIELDS: Final = ("image_embeds", "video_embeds", "audio_embeds", "prompt_embeds", "image_pil")


class Modality(StrEnum):
    """What an encoder makes of an item."""

    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"


_MODALITY: Final = {
    "image_url": Modality.IMAGE,
    "video_url": Modality.VIDEO,
    "audio_url": Modality.AUDIO,
    "input_audio": Modality.AUDIO,
}


@dataclass(slots=True)
class Item:
    """One media item. Written, it is `head`, the source's bytes of the body, `tail`, the uuid and a brace."""

    modality: Modality
    start: int
    end: int
    """Span of the part in the body."""
    head: bytes
    source: tuple[int, int]
    """Span in the body of the JSON string, quotes included, that is the URL or the data."""
    tail: bytes
    extras: bytes
    """Other members of the part, each with a comma before it."""
    run: Run | None
    url: str | None
    """The URL, None for inline data."""
    uuid: str = ""

    def written(self, body: memoryview, *, with_uuid: bool = True) -> list[bytes | memoryview]:
        """Return the item as a content part, its media by reference."""
        end = self.tail + self.extras + (b',"uuid":"%b"}' % self.uuid.encode() if with_uuid else b"}")
        return [self.head, body[self.source[0] : self.source[1]], end]

    def about(self) -> bytes:
        """Return what tells the item apart beside its content."""
        return self.head + self.tail


def find_items(scan: Scan, body: Buffer, media: Media) -> list[Item]:
    """Return the media items in order; raises ProxyError for what a client must not send."""
    items = []
    for part in scan.parts:
        kind = media_field(part.value)
        if kind:
            items.append(_item(scan, body, part, kind, media))
            if len(items) > media.max_items:
                raise ProxyError(400, f"the request has more than {media.max_items} media items", param="messages")
    return items


def media_field(part: dict[str, Any]) -> str | None:
    """Return the field in which vLLM would find media in a part; raises ProxyError for what a client must not send."""
    kind = part.get("type")
    if kind in EMBEDDING_FIELDS or any(part.get(name) is not None for name in EMBEDDING_FIELDS):
        raise _refused("embeddings are not taken from clients; send the media")
    found = [name for name in MEDIA_FIELDS if part.get(name) is not None]
    if len(found) > 1:
        raise _refused(f"a content part carries {' and '.join(found)}; send one part for each")
    if not found:
        if part.get("uuid") is not None:
            raise _refused("a content part has a uuid and no media; media are not taken by reference")
        return None
    name = found[0]
    if kind is None or kind == name or (kind == "input_image" and name == "image_url"):
        return name
    if part.get("uuid") is not None and kind == "text":
        return name
    raise _refused(f"a content part of type {str(kind)[:40]!r} carries {name}; its type must be {name!r}")


def _item(scan: Scan, body: Buffer, part: Part, kind: str, media: Media) -> Item:
    remainder = scan.remainder
    text = remainder.text
    fields = spans(text, part.start)
    value = part.value[kind]
    wanted = "data" if kind == "input_audio" else "url"
    inner = {wanted: fields[kind]}
    if isinstance(value, dict):
        inner = spans(text, fields[kind].value)
        value = value.get(wanted)
    elif kind == "input_audio":
        value = None
    if not isinstance(value, str):
        raise _refused(f"{kind}.{wanted} is not a string")
    string = inner.pop(wanted)
    source = (remainder.offset(string.value), remainder.offset(string.end))
    if source[1] - source[0] > media.max_size:
        raise ProxyError(413, f"a media item has {source[1] - source[0]} bytes; at most {media.max_size} are taken")
    token = remainder.run_of(value)
    inline = kind == "input_audio" or value[:5].lower() == "data:"
    outer = [span for name, span in fields.items() if name not in ("type", "uuid", *MEDIA_FIELDS)]
    return Item(
        modality=_MODALITY[kind],
        start=remainder.offset(part.start),
        end=remainder.offset(part.end),
        head=f'{{"type":"{kind}","{kind}":{{"{wanted}":'.encode(),
        source=source,
        tail=_members(scan, body, inner.values()) + b"}",
        extras=_members(scan, body, outer),
        run=remainder.runs[token[0]] if token else None,
        url=None if inline else _exact(body, source),
    )


def _members(scan: Scan, body: Buffer, members: Iterable[Span]) -> bytes:
    return b"".join(b"," + copied(scan, body, span.name, span.end) for span in members)


def copied(scan: Scan, body: Buffer | memoryview, start: int, end: int) -> bytes:
    """Return the bytes of the body that a span of the text stands for."""
    offset = scan.remainder.offset
    return bytes(memoryview(body)[offset(start) : offset(end)])


def _exact(body: Buffer, source: tuple[int, int]) -> str:
    try:
        url: str = json.loads(bytes(memoryview(body)[source[0] : source[1]]))
    except ValueError:
        raise _refused("a media URL is not UTF-8") from None
    return url


def _refused(message: str) -> ProxyError:
    return ProxyError(400, message, param="messages")
