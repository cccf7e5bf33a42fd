"""The small form of `python -m tests.proxy.dawdling`."""

from __future__ import annotations

from pathlib import Path

from tests.proxy import dawdling


async def test_memory_stays_within_the_budget(tmp_path: Path) -> None:
    ends = await dawdling.run(200, tmp_path)
    assert ends["answered"] >= dawdling.BUDGET // dawdling.BODY - 2
    assert ends["refused"] > 50
    assert ends["streamed"] == 20
