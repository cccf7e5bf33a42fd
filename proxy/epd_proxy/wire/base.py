"""What differs between vLLM releases on the wire between a proxy and its engines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from epd_proxy.items import Modality

Metadata = dict[str, list[int | float]]


class WireError(Exception):
    """An engine's answer contradicts the request; the message names what."""


@dataclass(slots=True)
class Feature:
    """One embedding that an encoder made, as it reported it."""

    modality: str
    metadata: Metadata
    """Vectors by name, flattened one level; empty: the consumer needs the media."""
    engine_hash: str
    transfer_id: str | None = None


@dataclass(slots=True)
class Encoded:
    """An encoder's answer to one request."""

    features: list[list[Feature]]
    """For each item sent, in order, its features; empty when the encoder reported nothing about it."""
    handles: dict[str, Any] = field(default_factory=dict)
    """What the consumer's connector needs, to be passed on verbatim."""


class Wire:
    """The dialect of some minor releases. Stateless."""

    name: ClassVar[str]
    sends_uuid: ClassVar[bool] = True
    """Whether items carry the proxy's uuid."""
    images_a_request: ClassVar[int] = 1
    """Images that one encoder request may carry; video and audio always travel alone."""
    encoder_limits: ClassVar[bytes] = b""
    """Members that keep an encoder from sampling."""
    audio_in_video: ClassVar[bool] = False
    """Whether a video with its audio may be sent on as metadata."""

    def read(self, answer: dict[str, Any], uuids: Sequence[str], modalities: Sequence[Modality]) -> Encoded:
        """Read an encoder's answer to items with these uuids and modalities; raises WireError."""
        raise NotImplementedError

    def embeds(self, features: Sequence[Feature]) -> bytes | None:
        """Return the members of the content part that stand for an item, or None when it must travel raw."""
        raise NotImplementedError


def name_transfers(features: Sequence[Feature], transfer_ids: Sequence[str]) -> None:
    """Note by which transfer each feature of an item is pushed: what the encoder says of it, else by order.

    A video's features come in the encoder's own order, which the ids followed (0.33 mooncake/scheduler.py).
    """
    for feature, transfer_id in zip(features, transfer_ids, strict=False):
        feature.transfer_id = feature.transfer_id or transfer_id


def flat(value: Any) -> list[int | float] | None:
    """Return a reported tensor as a vector: lists flattened, a bare number as one element; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [value]
    if not isinstance(value, list):
        return None
    out: list[int | float] = []
    for element in value:
        inner = flat(element)
        if inner is None:
            return None
        out += inner
    return out


def metadata_of(reported: dict[str, Any]) -> Metadata:
    """Return reported metadata as vectors; one that is no tensor of numbers makes the whole unusable, hence empty."""
    out: Metadata = {}
    for name, value in reported.items():
        vector = flat(value)
        if vector is None:
            return {}
        out[name] = vector
    return out


def json_embeds(features: Sequence[Feature]) -> bytes | None:
    """Return `"type":"image_embeds","image_embeds":{...}` with plain JSON lists (0.30 and later)."""
    if not features or not all(feature.metadata for feature in features):
        return None
    written = [f'"type":"{features[0].modality}_embeds"']
    written += [
        f'"{feature.modality}_embeds":{json.dumps(feature.metadata, separators=(",", ":"))}' for feature in features
    ]
    return ",".join(written).encode()
