import pytest

from epd_operator.engine.rules import RULES
from epd_operator.engine.rules.rule import Rule
from tests.unit.rules.mutations import NOT_SHOWN, mutants, survivors


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_the_cases_notice_every_change_of_a_rule(rule: Rule) -> None:
    assert survivors(rule) == []


def test_mutants_that_are_not_shown_exist() -> None:
    assert NOT_SHOWN.keys() <= {(rule.id, mutant.what) for rule in RULES for mutant in mutants(rule)}
