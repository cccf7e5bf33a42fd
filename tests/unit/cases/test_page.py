"""docs/development/cases.md names tests that are there, and every test of a case has its row."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from epd_operator.engine.rules import RULES

TESTS = Path(__file__).parents[2]
PAGE = (TESTS.parent / "docs" / "development" / "cases.md").read_text()
OPERATOR = (Path(__file__).parent / "test_operator_cases.py").read_text()
ROW = re.compile(r"\| ((?:[OP]\d+(?:, )?)+) \|")


def references() -> Iterator[tuple[str, str]]:
    """Files and the test of each that the page names; the test is empty where all of a file is meant."""
    proxy = False
    for line in PAGE.splitlines():
        proxy = proxy or line == "## Proxy"
        file = ""
        for word in re.findall(r"`((?:[a-z_]+/)*(?:test_\w+\.py)?(?:::\w+)?)`", line):
            named, _, test = word.partition("::")
            if named:
                file = f"proxy/{named}" if proxy and "/" not in named else named
            if file.endswith(".py"):
                yield file, test


@pytest.mark.parametrize(("file", "test"), sorted(set(references())))
def test_what_is_named_is_there(file: str, test: str) -> None:
    text = (TESTS / file).read_text()
    assert not test or f"def {test}(" in text


def test_rules_that_are_named_are_there() -> None:
    known = {rule.id for rule in RULES}
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", PAGE)) - {"epd-proxy"}
    assert named <= known


def test_every_test_of_a_case_has_its_row_and_the_row_names_it() -> None:
    rows = {row[1]: line for line in PAGE.splitlines() if (row := ROW.match(line))}
    tested = {f"O{number}" for number in re.findall(r"def test_o(\d+)_", OPERATOR)}
    told = {case for case, line in rows.items() if "| O;" in line or "| O |" in line or "| O. " in line}
    assert tested == told
    assert len(rows) == len(re.findall(r"^\| [OP]\d", PAGE, re.MULTILINE))
