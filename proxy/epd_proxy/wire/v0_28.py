"""vLLM 0.28: the first release whose consumer takes an image as metadata only. ECExampleConnector alone reports."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from epd_proxy.items import Modality
from epd_proxy.wire.base import Encoded, Feature, Wire, metadata_of
from epd_proxy.wire.tensor import saved_tensor


class Wire028(Wire):
    """`ec_items`: one entry a feature, in order, metadata beside the hash."""

    name = "0.28"
    modalities: frozenset[Modality] = frozenset({Modality.IMAGE})
    longest_vector: int | None = 3
    """A grid is t, h, w."""

    def read(self, answer: dict[str, Any], uuids: Sequence[str], modalities: Sequence[Modality]) -> Encoded:
        """Read `{"ec_items": [{"mm_hash": ..., "image_grid_thw": [[1, h, w]]}, ...]}`."""
        params = answer.get("ec_transfer_params")
        entries = params.get("ec_items") if isinstance(params, dict) else None
        if not isinstance(entries, list) or len(entries) != len(uuids):
            return Encoded([[] for _ in uuids])
        return Encoded([self._features(entry, kind) for entry, kind in zip(entries, modalities, strict=True)])

    def _features(self, entry: Any, modality: Modality) -> list[Feature]:
        if not isinstance(entry, dict):
            return []
        reported = {name: value for name, value in entry.items() if name != "mm_hash"}
        return [Feature(modality, metadata_of(reported), str(entry.get("mm_hash", "")))]

    def embeds(self, features: Sequence[Feature]) -> bytes | None:
        """Return metadata as base64 of `torch.save`."""
        if len(features) != 1 or not features[0].metadata or features[0].modality not in self.modalities:
            return None
        kind = f"{features[0].modality}_embeds"
        vectors = {name: saved_tensor(v[: self.longest_vector]) for name, v in features[0].metadata.items()}
        return f'"type":"{kind}","{kind}":{json.dumps(vectors)}'.encode()
