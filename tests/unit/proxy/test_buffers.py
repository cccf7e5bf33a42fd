from hypothesis import given
from hypothesis import strategies as st

from epd_proxy.buffers import SMALL, Budget, BufferPool, exported, size_class


@given(st.integers(min_value=SMALL + 1, max_value=1 << 30))
def test_a_size_class_is_at_most_an_eighth_larger(size: int) -> None:
    assert size <= size_class(size) <= size * 9 // 8 + 1
    assert size_class(size_class(size)) == size_class(size)


def test_a_buffer_is_used_again() -> None:
    pool = BufferPool(1 << 22)
    buffer = pool.take(100_000)
    pool.give(buffer)
    assert pool.idle == len(buffer)
    assert pool.take(100_000) is buffer
    assert pool.idle == 0


def test_a_buffer_that_somebody_may_still_read_is_not_used_again() -> None:
    pool = BufferPool(1 << 22)
    buffer = pool.take(100_000)
    view = memoryview(buffer)[5:10]
    pool.give(buffer)
    assert pool.idle == 0
    assert pool.take(100_000) is not buffer
    view.release()
    assert not exported(buffer)


def test_idle_buffers_are_bounded_and_trimmed() -> None:
    pool = BufferPool(300_000)
    for buffer in [pool.take(size) for size in (100_000, 120_000, 140_000, 90_000)]:
        pool.give(buffer)
        assert pool.idle <= 300_000
    while pool.idle:
        pool.trim()
    assert pool.idle == 0


def test_the_budget_is_not_exceeded() -> None:
    budget = Budget(10)
    assert budget.take(6)
    assert not budget.take(5)
    assert budget.take(4)
    budget.give(6)
    assert budget.used == 4
