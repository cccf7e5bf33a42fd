"""What the cases notice: each rule taken out of the table, or made to hold for other releases, one at a time.

    python -m tests.unit.rules.mutations

A mutant that passes its rule's own cases shows that they do not hold the rule to what it says. Nothing is written.
"""

import dataclasses
import sys
from collections.abc import Iterator
from typing import NamedTuple

from epd_operator.engine.release import OLDEST, Release
from epd_operator.engine.rules import RULES, check
from epd_operator.engine.rules.rule import Rule
from tests.unit.objects import wiring
from tests.unit.rules.case import Case
from tests.unit.rules.test_cases import CASES


class Mutant(NamedTuple):
    """A changed rule; None where it is gone."""

    what: str
    rule: Rule | None


def mutants(rule: Rule) -> Iterator[Mutant]:
    """Every way in which a rule is changed."""
    yield Mutant("removed", None)
    if rule.since.minor_key > OLDEST.minor_key:
        yield Mutant("holds for older releases too", dataclasses.replace(rule, since=_moved(rule.since, -1)))
        yield Mutant("begins a release later", dataclasses.replace(rule, since=_moved(rule.since, 1)))
    if rule.until is not None:
        yield Mutant("holds for later releases too", dataclasses.replace(rule, until=_moved(rule.until, 1)))
        yield Mutant("ends a release earlier", dataclasses.replace(rule, until=_moved(rule.until, -1)))


NOT_SHOWN = {
    ("text-model-encoder-idle", "holds for later releases too"): "text-model-encoder speaks first at the same place",
    ("mooncake-embeddings-with-prefill", "holds for older releases too"): "the connector is unknown there, same place",
    ("mooncake-setting", "holds for older releases too"): "the connector is unknown there, and so are its keys",
    ("nixl-in-image", "holds for older releases too"): "the connector is no default there",
    (
        "eccpu-without-nixl",
        "holds for older releases too",
    ): "eccpu-moves-nothing speaks too, and cases have one finding",
    ("v1-runner-needed", "holds for later releases too"): "there the other runner supports all of them",
    ("trust-differs", "holds for older releases too"): "the flag is unknown there, same place",
}
"""Mutants that no case can show, and why. Such bounds tell the reader."""


def _moved(release: Release, by: int) -> Release:
    return Release(release.major, release.minor + by)


def passes(case: Case, rules: tuple[Rule, ...]) -> bool:
    """Whether the objects of a case are judged as it says."""
    for breaks in case.breaks:
        found = check(wiring(breaks.spec, name=breaks.name, config=breaks.config), rules)
        if [(finding.rule, finding.path, finding.value) for finding in found] != [
            (case.rule, breaks.path, breaks.value)
        ]:
            return False
    return not any(
        check(wiring(spares.spec, name=spares.name, local=spares.local, config=spares.config), rules)
        for spares in case.spares
    )


def survivors(rule: Rule) -> list[str]:
    """The mutants of a rule that no case notices; its own cases are asked first."""
    ordered = sorted(CASES, key=lambda case: case.rule != rule.id)
    missed = []
    for mutant in mutants(rule):
        rules = tuple(new for old in RULES if (new := mutant.rule if old is rule else old) is not None)
        if (rule.id, mutant.what) not in NOT_SHOWN and all(passes(case, rules) for case in ordered):
            missed.append(mutant.what)
    return missed


def main() -> int:
    missed = [f"{rule.id}: {what}" for rule in RULES for what in survivors(rule)]
    count = sum(1 for rule in RULES for _ in mutants(rule))
    print(f"{len(RULES)} rules, {count} mutants, {len(NOT_SHOWN)} that no case can show, {len(missed)} not noticed")  # noqa: T201
    for survivor in missed:
        print(f"  {survivor}")  # noqa: T201
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
