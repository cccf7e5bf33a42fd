import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.cluster.testkubelet.fate import FINAL, Fate, FateKind, Step, following, seconds

WAYS = [
    (FateKind.RUN, [Step.STARTED, Step.READY]),
    (FateKind.UNREADY, [Step.STARTED]),
    (FateKind.CREATING, [Step.CREATING]),
    (FateKind.IMAGE, [Step.PULL_FAILED, Step.PULL_BACK_OFF]),
    (FateKind.EVICT, [Step.EVICTED]),
    (FateKind.COMPLETE, [Step.STARTED, Step.COMPLETED]),
]


@pytest.mark.parametrize(("kind", "way"), WAYS)
def test_a_new_pod_goes_its_way_and_stays_at_the_end(kind: FateKind, way: list[Step]) -> None:
    step, gone = Step.NEW, []
    while not math.isinf(seconds(step, Fate(kind))):
        step = following(step, kind)
        gone.append(step)
    assert gone == way


@pytest.mark.parametrize("kind", [FateKind.CRASH, FateKind.OOM])
def test_a_crash_goes_round(kind: FateKind) -> None:
    step = Step.NEW
    for expected in [Step.STARTED, Step.CRASHED, Step.CRASH_BACK_OFF] * 2:
        assert math.isfinite(seconds(step, Fate(kind)))
        step = following(step, kind)
        assert step is expected


@given(st.sampled_from(Step), st.floats(min_value=0, max_value=100))
def test_a_pod_recovers_from_anything_but_its_end(step: Step, ready_after: float) -> None:
    fate, passed = Fate(ready_after=ready_after), 0.0
    for _ in Step:
        if following(step, fate.kind) is step:
            break
        passed += seconds(step, fate)
        step = following(step, fate.kind)
    assert step is Step.READY or step in FINAL
    assert math.isfinite(passed)


def test_annotations_say_what_rules_leave_open() -> None:
    rule = Fate(FateKind.CRASH, message="no space left", ready_after=3)
    asked = {"test-kubelet/fate": "OOMKilled", "test-kubelet/end-after": "2", "other": "x"}
    assert Fate.of(asked, rule) == Fate(FateKind.OOM, message="no space left", ready_after=3, end_after=2)
    with pytest.raises(ValueError, match="Sleeping"):
        Fate.of({"test-kubelet/fate": "Sleeping"}, rule)
