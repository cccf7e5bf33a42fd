"""vLLM 0.31 and 0.32: several images a request, matched by `item_indices`; audio metadata.

0.32 adds `shape` to a NIXL handle, which its consumer needs and which is passed on like everything in a handle.
"""

from __future__ import annotations

from typing import Any, ClassVar

from epd_proxy.wire.base import WireError
from epd_proxy.wire.v0_30 import Wire030


class Wire031(Wire030):
    """Entries say which items they stand for; equal items share one."""

    name = "0.31"
    images_a_request: ClassVar[int] = 16

    def match(self, entries: dict[str, Any], position: int, uuid: str, count: int) -> str | None:
        """Match by position, then as before. Raises WireError when two entries claim one item."""
        claimed = [name for name, entry in entries.items() if position in _indices(entry)]
        if len(claimed) > 1:
            raise WireError(f"the encoder reported item {position} twice")
        return claimed[0] if claimed else super().match(entries, position, uuid, count)


def _indices(entry: dict[str, Any]) -> list[Any]:
    indices = entry.get("item_indices")
    return indices if isinstance(indices, list) else []
