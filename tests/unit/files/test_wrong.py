"""Each wrong file yields the finding that its first line names, and no other; each example yields none."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from epd_operator.api.parse import SHAPE_RULES
from epd_operator.cli.findings import judge
from epd_operator.cli.main import cli
from epd_operator.cli.reader import read
from epd_operator.engine.rules import RULES
from epd_operator.plan.build import build
from tests.unit.rules.test_cases import complaints

ROOT = Path(__file__).parents[3]
WRONG = sorted((ROOT / "tests/files/wrong").glob("*.yaml"))
EXAMPLES = sorted(path for path in (ROOT / "examples").rglob("*.yaml") if "kind: EPDDeployment" in path.read_text())
FIRST_LINE = re.compile(r"# expects: ([a-z][-a-z0-9]*)\n")


def expected(path: Path) -> str:
    """The rule that a wrong file names in its first line."""
    found = FIRST_LINE.match(path.read_text())
    assert found is not None, f"{path.name} does not say what it expects"
    return found[1]


def test_there_are_many_wrong_files() -> None:
    assert len(WRONG) >= 40
    assert {expected(path) for path in WRONG} <= {rule.id for rule in RULES} | SHAPE_RULES.keys()


def test_examples_are_found() -> None:
    assert {path.name for path in EXAMPLES} >= {"quickstart.yaml", "e-p-d.yaml", "qwen3-vl.yaml", "production.yaml"}


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_a_wrong_file_yields_one_finding(path: Path) -> None:
    result = CliRunner().invoke(cli, ["validate", "-o", "json", str(path)])
    found = json.loads(result.stdout)
    assert [finding["rule"] for finding in found] == [expected(path)]
    assert result.exit_code == (1 if found[0]["severity"] == "error" else 0)
    assert result.stderr == ""


@pytest.mark.parametrize("path", WRONG, ids=lambda path: path.stem)
def test_the_finding_says_where_what_why_and_what_to_do(path: Path) -> None:
    (document,) = read(str(path))
    (finding,) = judge(document).findings
    assert complaints(finding) == [], str(finding)
    assert finding.path.startswith(("spec.", "metadata."))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_right(path: Path) -> None:
    for document in read(str(path)):
        for local in (False, True):
            verdict = judge(document, local=local)
            assert verdict.findings == ()
            assert verdict.deployment is not None
            assert build(verdict.deployment, local=local).warnings == ()
