"""Connections that rest until the same tick."""

import asyncio
from unittest.mock import create_autospec

from epd_proxy.gather import PAUSE, Gatherer
from epd_proxy.upstream import EngineConnection


async def test_all_that_rest_read_on_at_the_next_tick_and_only_once() -> None:
    gatherer = Gatherer(asyncio.get_running_loop())
    first, second, third = (create_autospec(EngineConnection, instance=True) for _ in range(3))
    gatherer.rest(first)
    gatherer.rest(second)
    first.rested.assert_not_called()
    await asyncio.sleep(PAUSE * 5)
    gatherer.rest(third)
    await asyncio.sleep(PAUSE * 5)
    for each in (first, second, third):
        each.rested.assert_called_once_with()


async def test_what_rests_again_while_all_read_on_waits_for_another_tick() -> None:
    gatherer = Gatherer(asyncio.get_running_loop())
    connection = create_autospec(EngineConnection, instance=True)
    again = [True]

    def rested() -> None:
        if again:
            again.clear()
            gatherer.rest(connection)

    connection.rested.side_effect = rested
    gatherer.rest(connection)
    await asyncio.sleep(PAUSE * 10)
    assert connection.rested.call_count == 2
