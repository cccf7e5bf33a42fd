"""Every rule: what breaks it and only it, what comes near, and that the finding goes with the rule."""

import re

import pytest

from epd_operator.api.finding import Finding
from epd_operator.engine.rules import RULES, check
from epd_operator.engine.rules.rule import Kind, Rule
from tests.unit.objects import findings, wiring
from tests.unit.rules.case import Breaks, Case, Spares
from tests.unit.rules.cases import (
    arguments,
    devices,
    eccpu,
    embeddings,
    environment,
    extra_config,
    flag_needs,
    flags,
    kv,
    media,
    memory,
    model_runner,
    models,
    mooncake,
    naming,
    overlay,
    podspec,
    ports,
    preprocessing,
    processor,
    proxy,
    releases,
    resources,
    rollout,
    secrets,
    size,
    storage,
    topology,
)

MODULES = (
    releases,
    topology,
    naming,
    models,
    preprocessing,
    processor,
    embeddings,
    eccpu,
    mooncake,
    kv,
    extra_config,
    devices,
    storage,
    memory,
    resources,
    arguments,
    flags,
    flag_needs,
    model_runner,
    media,
    environment,
    proxy,
    rollout,
    overlay,
    podspec,
    ports,
    secrets,
    size,
)
CASES: tuple[Case, ...] = tuple(case for module in MODULES for case in module.CASES)
BREAKS = [
    pytest.param(case.rule, breaks, id=f"{case.rule}-{n}") for case in CASES for n, breaks in enumerate(case.breaks)
]
SPARES = [
    pytest.param(case.rule, spares, id=f"{case.rule}-{n}") for case in CASES for n, spares in enumerate(case.spares)
]


def rule_named(rule_id: str) -> Rule:
    return next(rule for rule in RULES if rule.id == rule_id)


def test_every_rule_has_a_case_that_breaks_it_and_a_near_miss() -> None:
    assert sorted(rule.id for rule in RULES) == sorted(case.rule for case in CASES)
    assert all(case.breaks and case.spares for case in CASES)


@pytest.mark.parametrize(("rule", "breaks"), BREAKS)
def test_one_mistake_is_one_finding(rule: str, breaks: Breaks) -> None:
    found = findings(breaks.spec, name=breaks.name, config=breaks.config)
    assert [(finding.rule, finding.path, finding.value) for finding in found] == [(rule, breaks.path, breaks.value)]
    assert breaks.remedy in found[0].remedy
    assert found[0].severity is rule_named(rule).severity


@pytest.mark.parametrize(("rule", "breaks"), BREAKS)
def test_without_the_rule_nothing_says_it(rule: str, breaks: Breaks) -> None:
    others = tuple(other for other in RULES if other.id != rule)
    found = check(wiring(breaks.spec, name=breaks.name, config=breaks.config), others)
    assert rule not in [finding.rule for finding in found]


@pytest.mark.parametrize(("rule", "spares"), SPARES)
def test_near_misses_are_clean(rule: str, spares: Spares) -> None:
    assert findings(spares.spec, name=spares.name, local=spares.local, config=spares.config) == []


INSTRUCTIONS = (
    "add|begin|check|give|keep|list|lower|make|move|name|put|raise|remove|rename|replace|set|shorten|update|use|write"
)


def complaints(finding: Finding) -> list[str]:
    """What is wrong with the words of a finding."""
    text = f"{finding.message}; {finding.remedy}"
    checks = {
        "rule id is kebab-case": re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", finding.rule),
        "path is there": finding.path,
        "message is there": finding.message.strip(),
        "message has no full stop": not finding.message.endswith((".", "!", "?")),
        "remedy is an instruction": re.match(rf"({INSTRUCTIONS})\b", finding.remedy),
        "remedy has no full stop": not finding.remedy.endswith((".", "!", "?")) or finding.remedy.endswith(".."),
        "at most two sentences": len(re.findall(r"[.!?] [A-Z]", text)) < 2,
        "short enough to read": len(text) < 700,
        "one line": "\n" not in str(finding),
    }
    return [name for name, held in checks.items() if not held]


@pytest.mark.parametrize(("rule", "breaks"), BREAKS)
def test_words_of_findings(rule: str, breaks: Breaks) -> None:
    for finding in findings(breaks.spec, name=breaks.name, config=breaks.config):
        assert complaints(finding) == [], str(finding)
        assert finding.path.startswith(("spec.", "metadata."))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_rules_are_documented(rule: Rule) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", rule.id)
    assert rule.what.endswith(".")
    assert rule.why.endswith(".")
    assert rule.source
    assert rule.check.__doc__


def test_rule_ids_are_unique() -> None:
    ids = [rule.id for rule in RULES]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_rules_say_of_vllm_is_proved_or_says_why_not(rule: Rule) -> None:
    about_vllm = rule.kind in (Kind.REFUSED, Kind.SILENT)
    assert about_vllm == (rule.proved or bool(rule.unproved))
    assert not (rule.proved and rule.unproved)
