import asyncio

import pytest

from epd_proxy.slots import QueueFullError, Slots


async def test_places_are_given_in_order() -> None:
    slots = Slots(1, 3)
    await slots.take(1)
    order: list[int] = []

    async def wait(number: int) -> None:
        await slots.take(1)
        order.append(number)
        slots.give()

    tasks = [asyncio.create_task(wait(number)) for number in range(3)]
    await asyncio.sleep(0)
    assert slots.waiting == 3
    slots.give()
    await asyncio.gather(*tasks)
    assert (order, slots.used, slots.waiting) == ([0, 1, 2], 0, 0)


async def test_the_queue_is_bounded_in_length_and_in_time() -> None:
    slots = Slots(1, 1)
    await slots.take(1)
    waiting = asyncio.create_task(slots.take(0.01))
    await asyncio.sleep(0)
    with pytest.raises(QueueFullError, match="full"):
        await slots.take(1)
    with pytest.raises(QueueFullError, match="within"):
        await waiting
    assert (slots.used, slots.waiting) == (1, 0)


async def test_a_place_given_to_who_has_just_left_is_not_lost() -> None:
    slots = Slots(1, 1)
    await slots.take(1)
    waiting = asyncio.create_task(slots.take(1))
    await asyncio.sleep(0)
    slots.give()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert slots.used == 0
