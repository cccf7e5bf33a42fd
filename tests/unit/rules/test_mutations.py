import pytest

from epd_operator.engine.rules import RULES, flag_needs
from epd_operator.engine.rules.rule import Rule
from tests.unit.rules.mutations import NOT_SHOWN, mutants, passes, survivors
from tests.unit.rules.test_cases import CASES


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_cases_notice_every_change_of_a_rule(rule: Rule) -> None:
    assert survivors(rule) == []


def test_mutants_that_are_not_shown_exist() -> None:
    assert NOT_SHOWN.keys() <= {(rule.id, mutant.what) for rule in RULES for mutant in mutants(rule)}


@pytest.mark.parametrize("row", range(len(flag_needs.NEEDS)), ids=lambda row: flag_needs.NEEDS[row].flag)
def test_the_cases_notice_every_need_of_a_flag(row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    [case] = [case for case in CASES if case.rule == flag_needs.need.id]
    monkeypatch.setattr(flag_needs, "NEEDS", flag_needs.NEEDS[:row] + flag_needs.NEEDS[row + 1 :])
    assert not passes(case, RULES)
