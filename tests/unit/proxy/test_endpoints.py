"""Which revision a request goes to."""

from collections import Counter
from typing import Any, cast

import pytest

from epd_proxy.config import Role
from epd_proxy.endpoints import Endpoint, Fleet, State
from epd_proxy.pool import EnginePool

E, D = Role.ENCODE, Role.DECODE


def fleet(**revisions: dict[Role, int]) -> Fleet:
    """A fleet with so many engines that are up."""
    found = Fleet()
    for name, roles in revisions.items():
        for role, count in roles.items():
            for number in range(count):
                pool = cast("EnginePool", Any)  # nothing is asked of it
                endpoint = Endpoint(f"http://{role}{number}.{name}", role, number, role, pool, name, version="0.33.0")
                endpoint.state = State.UP
                found.add(endpoint)
    return found


def share(found: Fleet, name: str, picks: int = 4000) -> float:
    """Which part of requests a revision gets."""
    picked = Counter(revision.name for _ in range(picks) if (revision := found.pick()) is not None)
    return picked[name] / picks


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({E: 1, D: 3}, {E: 1, D: 1}, 2 / 3),  # of encode a half, of decode three quarters; the other a half, a quarter
        ({E: 2, D: 2}, {E: 2, D: 2}, 1 / 2),
        ({E: 1, D: 4}, {E: 0, D: 4}, 1),
        ({D: 1}, {E: 1, D: 3}, 1 / 4),
    ],
)
def test_requests_go_where_the_scarcest_role_can_carry_them(
    old: dict[Role, int], new: dict[Role, int], expected: float
) -> None:
    found = fleet(old=old, new=new)
    found.set_roles("new", {E, D})
    assert share(found, "old") == pytest.approx(expected, abs=0.05)


def test_a_closed_revision_is_not_picked() -> None:
    found = fleet(old={D: 3}, new={D: 1})
    found.close({"old"})
    assert [revision.name for revision in found.serving] == ["new"]
    assert share(found, "new", 20) == 1
    found.close({"old", "new"})
    assert found.pick() is None
    assert not found.ready
    found.close(())
    assert len(found.serving) == 2


def test_text_waits_for_encoders_that_start_and_not_for_those_that_are_lost_or_scaled_to_none() -> None:
    found = fleet(r={E: 1, D: 1})
    (revision,) = found.revisions.values()
    encoder, decoder = revision.endpoints
    assert revision.complete

    starting = fleet()
    encoder.state = State.NEW
    starting.add(encoder)
    starting.add(decoder)
    assert starting.pick() is None
    encoder.state = State.UP
    starting.refresh()
    assert starting.pick() is not None
    encoder.state = State.DOWN
    starting.refresh()
    lost = starting.pick()
    assert lost is not None
    assert not lost.complete

    none = fleet(r={D: 1})
    none.set_roles("r", {E, D})
    assert none.pick() is not None
    encoder.state = State.NEW
    none.add(encoder)
    assert none.pick() is not None  # what has begun goes on while one joins
