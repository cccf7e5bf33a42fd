"""vLLM 0.33: entries name their modality, and a video may come with its audio as a second feature."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epd_proxy.items import Modality
from epd_proxy.wire.base import Encoded, Feature, json_embeds
from epd_proxy.wire.v0_30 import entries_of, feature
from epd_proxy.wire.v0_31 import Wire031


class Wire033(Wire031):
    """One content part may carry `video_embeds` and `audio_embeds`."""

    name = "0.33"
    audio_in_video = True

    def read(self, answer: dict[str, Any], uuids: Sequence[str], modalities: Sequence[Modality]) -> Encoded:
        """As 0.31; two entries of video and audio for one video are its two features, video first."""
        entries = entries_of(answer)
        kinds = sorted((entry.get("modality"), name) for name, entry in entries.items() if entry.get("modality"))
        if list(modalities) == [Modality.VIDEO] and [kind for kind, _ in kinds] == ["audio", "video"]:
            both = [feature(name, entries[name], kind) for kind, name in reversed(kinds)]
            return Encoded([both], entries)
        return super().read(answer, uuids, modalities)

    def embeds(self, features: Sequence[Feature]) -> bytes | None:
        """Return metadata as JSON lists, of one or two features."""
        return json_embeds(features)
