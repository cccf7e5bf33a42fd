"""What is complained of when a deployment was broken."""

import pytest

from tests.e2e.faults.load import Outcome
from tests.e2e.faults.report import judge, table

STRIKE = (100.0, 100.5)
GOOD = [Outcome(begun, begun + 2) for begun in (95.0, 96.0, 99.0, 103.0)]
IN_FLIGHT = Outcome(99.0, 101.0, "503: the decode instance ended", told=True)
BETWEEN = Outcome(100.2, 101.0, "503: the decode instance ended", told=True)
EARLIER = Outcome(97.0, 99.0, "503: the decode instance ended", told=True)
LATER = Outcome(101.0, 101.5, "503: the decode instance ended", told=True)
MUCH_LATER = Outcome(110.0, 110.5, "connection refused")
BROKEN = Outcome(99.0, 101.0, "connection reset")
WRONG = Outcome(99.0, 101.0, wrong=True)

CASES = [
    ([], False, False, ""),
    ([IN_FLIGHT], True, False, ""),
    ([IN_FLIGHT], False, False, "a planned change failed a request"),
    ([BETWEEN], True, False, ""),
    ([EARLIER], True, False, "not in flight at the kill"),
    ([LATER], True, False, "not in flight at the kill"),
    ([BROKEN], True, False, "without OpenAI's words"),
    ([BROKEN], True, True, ""),
    ([MUCH_LATER], True, True, "not in flight at the kill"),
    ([WRONG], True, True, "1 answers are wrong"),
]


@pytest.mark.parametrize(("more", "may_fail", "may_break", "complaint"), CASES)
def test_complaints(more: list[Outcome], complaint: str, *, may_fail: bool, may_break: bool) -> None:
    result = judge("a fault", [*GOOD, *more], STRIKE, may_fail=may_fail, may_break=may_break)
    assert bool(result.complaints) == bool(complaint)
    assert complaint in "".join(result.complaints)
    assert result.sent == len(GOOD) + len(more)


def test_the_table_counts() -> None:
    result = judge("kill a decode", [*GOOD, IN_FLIGHT], STRIKE, may_fail=True, may_break=False)
    assert table([result]).splitlines()[-1] == "| kill a decode | 5 | 1 | 0 | 4.0 | 2.0 |"


def test_nothing_is_said_of_no_answers() -> None:
    with pytest.raises(ValueError, match="kill all: 0 good answers of 1"):
        judge("kill all", [IN_FLIGHT], STRIKE, may_fail=True, may_break=False)
