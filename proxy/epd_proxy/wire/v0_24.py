"""vLLM 0.24 to 0.27: the encoder is primed, the media travel on to the consumer.

Both sides find the embedding by the engine's own hash of the media, so these must arrive byte for byte and without a
uuid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from epd_proxy.items import Modality
from epd_proxy.wire.base import Encoded, Feature, Wire


class Wire024(Wire):
    """0.24 to 0.27: no built-in connector reports anything."""

    name = "0.24"
    sends_uuid = False
    encoder_limits = b',"max_tokens":1'

    def read(self, answer: dict[str, Any], uuids: Sequence[str], modalities: Sequence[Modality]) -> Encoded:  # noqa: ARG002
        """Nothing is reported; a custom connector's params are passed on."""
        params = answer.get("ec_transfer_params")
        return Encoded([[] for _ in uuids], params if isinstance(params, dict) else {})

    def embeds(self, features: Sequence[Feature]) -> bytes | None:  # noqa: ARG002
        """Media always travel raw."""
        return None
