from epd_proxy.config import Retries
from epd_proxy.retries import RetryBudget


def test_a_share_of_the_requests_and_always_a_few() -> None:
    budget = RetryBudget(Retries(budget_ratio=0.1, budget_floor=2))
    assert [budget.take(100.0) for _ in range(3)] == [True, True, False]
    budget.requests += 50
    assert sum(budget.take(101.0) for _ in range(20)) == 3
    assert sum(budget.take(111.0) for _ in range(20)) == 5  # of the 50 before
    assert sum(budget.take(200.0) for _ in range(20)) == 2


def test_no_floor_and_no_ratio_is_no_retry() -> None:
    assert not RetryBudget(Retries(budget_ratio=0, budget_floor=0)).take(1.0)
