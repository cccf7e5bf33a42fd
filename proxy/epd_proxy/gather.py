"""Answers that come in bursts are read in handfuls.

An engine that hands out many chunks at once (a stall that ends, a step of many tokens, a tiny model) would wake the
proxy and its client for each. A stream that brought bytes twice within moments is therefore not read for one
millisecond, and what has come by then is passed on in one piece: what a network card does to interrupts.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from epd_proxy.upstream import EngineConnection

PAUSE: Final = 0.001
"""Seconds that a connection in a burst is not read: by how much its bytes may be late."""

MOMENT: Final = 0.002
"""Seconds between two reads of one burst. A decoding step of a real model takes longer."""

BULK: Final = 64 * 1024
"""Bytes in one read that are no burst of small chunks but a large body, which rests only slow down."""


class Gatherer:
    """Lets connections rest, all until the same tick, so that one timer serves them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._resting: list[EngineConnection] = []

    def rest(self, connection: EngineConnection) -> None:
        """Read no more of a connection until the next tick."""
        if not self._resting:
            self._loop.call_later(PAUSE, self._tick)
        self._resting.append(connection)

    def _tick(self) -> None:
        resting, self._resting = self._resting, []
        for connection in resting:
            connection.rested()
