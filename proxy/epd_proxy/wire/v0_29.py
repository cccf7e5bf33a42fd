"""vLLM 0.29: as 0.28, for video and audio too, and for vectors of any length."""

from __future__ import annotations

from epd_proxy.items import Modality
from epd_proxy.wire.v0_28 import Wire028


class Wire029(Wire028):
    """Adds `video_embeds` and `audio_embeds`."""

    name = "0.29"
    modalities = frozenset(Modality)
    longest_vector = None
