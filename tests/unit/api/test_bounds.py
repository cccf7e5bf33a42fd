"""maxSurge and maxUnavailable as Kubernetes' Deployment rounds them."""

import pytest

from epd_operator.api.bounds import Bounds
from epd_operator.api.rollout import Rollout

COUNTS = [
    (0, 1, 4, 0, 1),
    ("25%", "25%", 4, 1, 1),
    ("25%", "25%", 3, 1, 0),
    ("10%", "10%", 10, 1, 1),
    ("10%", "10%", 11, 2, 1),
    ("0%", "0%", 5, 0, 1),
    (0, "10%", 5, 0, 1),
    (0, "10%", 20, 0, 2),
    ("100%", 0, 3, 3, 0),
    (2, 7, 3, 2, 3),
    ("100%", "100%", 0, 0, 1),
]


@pytest.mark.parametrize(("surge", "unavailable", "desired", "above", "missing"), COUNTS)
def test_counts(surge: int | str, unavailable: int | str, desired: int, above: int, missing: int) -> None:
    bounds = Bounds(surge, unavailable)
    assert bounds.surge(desired) == above
    assert bounds.unavailable(desired) == missing


DEFAULTS: list[tuple[dict[str, object], Bounds]] = [
    ({}, Bounds(0, 1)),
    ({"maxSurge": 1}, Bounds(1, 0)),
    ({"maxSurge": "25%", "maxUnavailable": 2}, Bounds("25%", 2)),
    ({"maxUnavailable": "30%"}, Bounds(0, "30%")),
    ({"maxSurge": 0, "maxUnavailable": 0}, Bounds(0, 1)),
    ({"maxSurge": "0%", "maxUnavailable": "0%"}, Bounds("0%", 1)),
    ({"strategy": "BlueGreen"}, Bounds("100%", 0)),
    ({"strategy": "BlueGreen", "maxSurge": 0}, Bounds(0, 1)),
    ({"strategy": "Recreate"}, Bounds(0, 1)),
]


@pytest.mark.parametrize(("written", "bounds"), DEFAULTS)
def test_defaults(written: dict[str, object], bounds: Bounds) -> None:
    assert Bounds.of(Rollout.model_validate(written)) == bounds
