"""The short form of `make soak`."""

from __future__ import annotations

from tests.proxy.soaking import Soak

SECONDS = 60


async def test_soak() -> None:
    ends = await Soak(seed=7).run(SECONDS)
    assert ends["answered"] > 20
    assert ends["streamed"] > 20
    assert ends["broken stream"]
    assert ends["left"]
