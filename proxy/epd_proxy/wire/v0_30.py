"""vLLM 0.30: metadata as plain JSON, handles by engine hash, one item a request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epd_proxy.items import Modality
from epd_proxy.wire.base import Encoded, Feature, Wire, json_embeds, metadata_of


class Wire030(Wire):
    """`ec_transfer_params` is `{engine hash: {"metadata": {...}, handles ...}}`."""

    name = "0.30"

    def read(self, answer: dict[str, Any], uuids: Sequence[str], modalities: Sequence[Modality]) -> Encoded:
        """Match the entries with the items; an item without an entry has no features and travels raw."""
        entries = entries_of(answer)
        out = []
        for position, (uuid, modality) in enumerate(zip(uuids, modalities, strict=True)):
            found = self.match(entries, position, uuid, len(uuids))
            out.append([feature(found, entries[found], modality)] if found is not None else [])
        return Encoded(out, entries)

    def match(self, entries: dict[str, Any], position: int, uuid: str, count: int) -> str | None:  # noqa: ARG002
        """Return the hash of the item at a position: its uuid when nothing was folded in, else the only entry."""
        if uuid in entries:
            return uuid
        return next(iter(entries)) if count == 1 and len(entries) == 1 else None

    def embeds(self, features: Sequence[Feature]) -> bytes | None:
        """Return metadata as JSON lists."""
        return json_embeds(features) if len(features) == 1 else None


def entries_of(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the entries by engine hash."""
    params = answer.get("ec_transfer_params")
    if not isinstance(params, dict):
        return {}
    return {name: entry for name, entry in params.items() if isinstance(entry, dict)}


def feature(engine_hash: str, entry: dict[str, Any], modality: str) -> Feature:
    """Return one entry as a feature."""
    reported = entry.get("metadata")
    transfer = entry.get("transfer_id")
    return Feature(
        modality=modality,
        metadata=metadata_of(reported) if isinstance(reported, dict) else {},
        engine_hash=engine_hash,
        transfer_id=transfer if isinstance(transfer, str) else None,
    )
