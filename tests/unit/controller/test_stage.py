"""Stages of a rollout: never without a set that serves, where there was one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_operator.api.rollout import RolloutStrategy
from epd_operator.controller.stage import RevisionSet, Stage, stage

SERVING, DONE, BROKEN = (
    RevisionSet(serves=True, done=False, number=1),
    RevisionSet(serves=True, done=True, number=2),
    RevisionSet(serves=False, done=False, number=1),
)
CASES = [
    ("first", {}, None, False, Stage(True, False, "t", False)),
    ("alone", {"t": DONE}, None, False, Stage(True, False, "t", False)),
    ("begin", {"o": SERVING}, None, False, Stage(True, False, "o", True)),
    ("on the way", {"o": SERVING, "t": SERVING}, None, False, Stage(True, False, "o", True)),
    ("done", {"o": SERVING, "t": DONE}, None, False, Stage(True, True, "t", True)),
    ("nothing to lose", {"o": BROKEN, "t": BROKEN}, None, False, Stage(True, True, "t", True)),
    ("recreate", {"o": SERVING}, RolloutStrategy.RECREATE, False, Stage(False, True, "o", True)),
    ("paused before", {"o": SERVING}, None, True, Stage(False, False, "o", True)),
    ("paused amid", {"o": SERVING, "t": SERVING}, None, True, Stage(True, False, "o", True)),
]


@pytest.mark.parametrize(("sets", "strategy", "paused", "expected"), [pytest.param(*c[1:], id=c[0]) for c in CASES])
def test_stage(
    sets: dict[str, RevisionSet],
    strategy: RolloutStrategy | None,
    paused: bool,
    expected: Stage,
) -> None:
    assert stage("t", sets, strategy, paused=paused) == expected


a_set = st.builds(RevisionSet, serves=st.booleans(), done=st.just(False), number=st.integers(0, 9))


@given(
    st.dictionaries(st.sampled_from("opqt"), a_set),
    st.sampled_from([None, RolloutStrategy.PROPORTIONAL, RolloutStrategy.BLUE_GREEN]),
    st.booleans(),
)
def test_what_serves_goes_only_for_a_target_that_is_done(
    sets: dict[str, RevisionSet],
    strategy: RolloutStrategy,
    paused: bool,
) -> None:
    now = stage("t", sets, strategy, paused=paused)
    serving = any(each.serves for name, each in sets.items() if name != "t")
    assert not (now.remove_old and serving)
    assert now.lead in {*sets, "t"}
