"""What encoders report and what consumers must be sent, release by release."""

from __future__ import annotations

import base64
import hashlib
import io
import pickletools
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MEDIA = ("image_url", "video_url", "audio_url", "input_audio")
MODALITY = {"image_url": "image", "video_url": "video", "audio_url": "audio", "input_audio": "audio"}


@dataclass(slots=True)
class Content:
    """One embedding in the cache of a simulated encoder."""

    uuid: str
    modality: str
    digest: str
    metadata: dict[str, Any]
    """The item's own tensors, as nested lists; a number is a tensor without dimensions."""
    mark: str = ""

    def engine_hash(self, options: str) -> str:
        """Return the engine's own key: the uuid unless something is folded in."""
        return self.uuid if not options else hashlib.sha256(f"{self.uuid}{options}".encode()).hexdigest()[:32]


def content_of(part: dict[str, Any], uuid: str) -> Content:
    """Return what encoding a content part makes."""
    kind = next(name for name in MEDIA if name in part)
    value = part[kind]
    media = value if isinstance(value, str) else value.get("url") or value.get("data")
    digest = hashlib.sha256(media.encode()).hexdigest()
    number = int(digest[:4], 16)
    height, width = 2 * (8 + number % 61), 2 * (8 + number // 61 % 61)
    modality = MODALITY[kind]
    metadata: dict[str, Any]
    if modality == "audio":
        metadata = {"audio_feature_lengths": 100 + number % 900}
    elif modality == "video":
        metadata = {"video_grid_thw": [4, height, width], "second_per_grid_ts": 0.5}
    else:
        metadata = {"image_grid_thw": [1, height, width]}
    return Content(uuid, modality, digest, metadata, _mark(media))


def hears(part: dict[str, Any], request: dict[str, Any]) -> bool:
    """Say whether a video, as media or as metadata, goes with its audio."""
    options = request.get("mm_processor_kwargs") or {}
    return bool(options.get("use_audio_in_video")) and ("video_url" in part or "video_embeds" in part)


def audio_of(video: Content) -> Content:
    """Return the second embedding that a video with its audio makes."""
    return Content(f"{video.uuid}-audio", "audio", video.digest, {"audio_feature_lengths": 77}, video.mark)


def unreadable(value: Any) -> bool:
    """Say whether a media field holds inline data that are too short to be any media."""
    media = value if isinstance(value, str) else value.get("url", "")
    return media.startswith("data:") and len(media.partition(",")[2]) < 24


def _mark(media: str) -> str:
    """Return the mark that tests put behind the first 32 characters of base64: m and eleven digits."""
    _, found, data = media.partition(";base64,")
    mark = (data if found else media)[32:44]
    return mark if mark[:1] == "m" and mark[1:].isdigit() and len(mark) == 12 else ""


def report(
    minor: str, contents: list[Content], options: str, connector: str, *, empty: bool, transfers: Sequence[Any] = ()
) -> dict[str, Any] | None:
    """Return `ec_transfer_params` of an encoder's answer, at its least convenient: batches in reverse order.

    `transfers` are the ids that a Mooncake encoder was given, by item.
    """
    release = int(minor.partition(".")[2])
    if release < 28:
        return None
    if release < 30:
        if connector == "ECCPUConnector":
            return None
        items = [{"mm_hash": c.engine_hash(options), **({} if empty else c.metadata)} for c in contents]
        return {"ec_items": items}
    out: dict[str, Any] = {}
    for position in reversed(range(len(contents))):
        content = contents[position]
        key = content.engine_hash(options)
        if key in out:
            out[key]["item_indices"].insert(0, position)
            continue
        entry: dict[str, Any] = {"metadata": {} if empty else content.metadata}
        if release >= 31:
            entry |= {"metadata": {} if empty else vectors(content), "item_indices": [position]}
        if release >= 33:
            entry["modality"] = content.modality
        if connector == "ECCPUConnector":
            entry |= {"peer_host": "127.0.0.1", "peer_port": 5601, "size_bytes": 4096}
            if release >= 32:
                entry["shape"] = [16, 256]
        if connector == "ECMooncakeConnector" and position < len(transfers):
            entry["transfer_id"] = transfers[position]
        out[key] = entry
    return out


def vectors(content: Content) -> dict[str, list[Any]]:
    """Return the flat vectors that a consumer must be sent for a content; from 0.31 they are reported so."""
    return {name: _flat(value) for name, value in content.metadata.items()}


def _flat(value: Any) -> list[Any]:
    return [x for element in value for x in _flat(element)] if isinstance(value, list) else [value]


def received(minor: str, part: dict[str, Any], modality: str) -> dict[str, list[Any]]:
    """Return the vectors that a content part carries, decoded as that release does; raises ValueError."""
    release = int(minor.partition(".")[2])
    payload = part[f"{modality}_embeds"]
    if release >= 30:
        for value in payload.values():
            if not isinstance(value, list) or any(isinstance(x, list) for x in value):
                raise ValueError(f"{value} is not a flat list")
        return dict(payload)
    return {name: load_tensor(value) for name, value in payload.items()}


def load_tensor(text: str) -> list[Any]:
    """Read a vector from base64 of `torch.save`, as far as the format is fixed; raises ValueError."""
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(text))) as archive:
        names = [opcode[1] for opcode in pickletools.genops(archive.read("archive/data.pkl"))]
        data = archive.read("archive/data/0")
    if "torch LongStorage" in names:
        return [x for (x,) in struct.iter_unpack("<q", data)]
    if "torch DoubleStorage" in names:
        return [x for (x,) in struct.iter_unpack("<d", data)]
    raise ValueError("no storage of a known kind")
