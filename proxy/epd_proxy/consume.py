"""What the consumers of embeddings are sent: items as metadata, or raw under the same uuid."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from epd_proxy.encode import Embedded
from epd_proxy.items import Item, Modality
from epd_proxy.metrics import Metrics
from epd_proxy.rewrite import Edit, Piece
from epd_proxy.wire import Wire


class Consumption:
    """The items of one attempt, decided once for prefill and decode alike."""

    def __init__(
        self,
        items: Sequence[Item],
        body: memoryview,
        wire: Wire,
        embedded: Embedded | None,
        *,
        raw: str = "",
        push: bool = False,
        audio_in_video: bool = False,
    ) -> None:
        """Decide. `raw` is the reason why all items travel raw, empty if they need not; `push` names the transfers."""
        self._items = items
        self._body = body
        self._wire = wire
        self._embedded = embedded
        self._push = push
        self._written: list[tuple[bytes | None, str]] = [
            (None, raw) if raw else self._decide(item, audio_in_video) for item in items
        ]
        heard = any(i.modality is Modality.AUDIO or (audio_in_video and i.modality is Modality.VIDEO) for i in items)
        if heard and any(members is None for members, _ in self._written):
            # A processor of audio may use up placeholders of other items too: all or none.
            self._written = [(None, reason or "audio") for _, reason in self._written]

    @property
    def rewritten(self) -> bool:
        """Whether any item travels as metadata."""
        return any(members is not None for members, _ in self._written)

    def edits(self, *, raw: bool = False) -> list[Edit]:
        """Return the edits of the items; `raw` for an engine that gets the media in any case."""
        return [
            Edit(item.start, item.end, self._part(item, None if raw else members))
            for item, (members, _) in zip(self._items, self._written, strict=True)
        ]

    def handles(self) -> bytes | None:
        """Return the JSON of `ec_transfer_params`, None when there are none."""
        if self._embedded is None:
            return None
        params: dict[str, Any] = dict(self._embedded.handles)
        if self._push:
            params["ec_items"] = [
                {"mm_hash": feature.engine_hash, "transfer_id": feature.transfer_id}
                for uuid in dict.fromkeys(item.uuid for item in self._items)
                for feature in self._embedded.features.get(uuid, [])
                if feature.transfer_id
            ]
        return json.dumps(params, separators=(",", ":")).encode() if params else None

    def count(self, metrics: Metrics) -> None:
        """Count the items by what became of them."""
        for members, reason in self._written:
            metrics.media_items["rewritten" if members is not None else "raw", reason] += 1

    def _decide(self, item: Item, audio_in_video: bool) -> tuple[bytes | None, str]:
        features = self._embedded.features.get(item.uuid, []) if self._embedded else []
        if not features:
            return None, "not-reported" if self._embedded else "no-encoder"
        wanted = 2 if audio_in_video and item.modality is Modality.VIDEO else 1
        if len(features) != wanted and self._wire.audio_in_video:
            return None, "no-metadata"
        if wanted == 2 and not self._wire.audio_in_video:
            return None, "release"
        members = self._wire.embeds(features)
        return members, "" if members is not None else "no-metadata"

    def _part(self, item: Item, members: bytes | None) -> list[Piece]:
        if members is None:
            return list(item.written(self._body, with_uuid=self._wire.sends_uuid))
        return [b"{" + members + item.extras + b',"uuid":"' + item.uuid.encode() + b'"}']
