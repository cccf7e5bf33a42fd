"""Write docs/rules: one page a rule and a table of all, from the rules' own data and the cases that test them.

python -m hack.rule_pages
"""

from collections.abc import Iterator
from pathlib import Path

from epd_operator.api.finding import Finding
from epd_operator.cli.rules import releases
from epd_operator.engine.rules import RULES
from epd_operator.engine.rules.rule import Rule
from tests.unit.objects import findings
from tests.unit.rules.case import Breaks
from tests.unit.rules.test_cases import CASES

TARGET = Path(__file__).resolve().parent.parent / "docs" / "rules"
INDEX = """\
# Rules

Made by `make docs` from the rules in `operator/epd_operator/engine/rules`; do not edit. `epd rules` prints the same.
A rule *refused by vLLM* says what the release itself would say after the image pull and often after the model load;
*accepted but wrong* means that vLLM starts and does something else than asked; *stricter than vLLM* is the cluster's,
the operator's or the other roles' matter; *advice* is a warning.

| rule | severity | kind | releases | |
|---|---|---|---|---|
"""


def pages() -> dict[str, str]:
    """File name -> text of every page."""
    rows = "".join(
        f"| [{rule.id}]({rule.id}.md) | {rule.severity} | {rule.kind} | {releases(rule)} | {_cell(rule.what)} |\n"
        for rule in RULES
    )
    examples = {case.rule: case.breaks[0] for case in CASES}
    written = {f"{rule.id}.md": "\n".join(_page(rule, examples[rule.id])) for rule in RULES}
    return {"README.md": INDEX + rows, **written}


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _page(rule: Rule, example: Breaks) -> Iterator[str]:
    yield f"# {rule.id}\n"
    yield f"{rule.what}\n"
    yield f"**When it is broken:** {rule.why}\n"
    yield f"- severity: {rule.severity}"
    yield f"- kind: {rule.kind}"
    yield f"- vLLM releases: {releases(rule)}"
    yield f"- source: {rule.source}"
    yield f"- proof: {_proof(rule)}\n"
    yield "This on top of a valid object breaks it:\n"
    yield f"```yaml\n{_patch(example)}\n```\n"
    yield "and `epd validate` says:\n"
    found = next(finding for finding in _findings(example) if finding.rule == rule.id)
    yield f"```text\n{found}\n```\n"


def _proof(rule: Rule) -> str:
    if rule.proved:
        return "its cases are put before the real vLLM of every release by the conformance tests"
    return f"none, since {rule.unproved}" if rule.unproved else "none needed, since it is not about what vLLM accepts"


def _patch(example: Breaks) -> str:
    lines = [line for line in example.spec.strip().splitlines() if line.strip()]
    spec = [f"spec: {lines[0]}"] if lines and lines[0].startswith("{") else ["spec:", *(f"  {line}" for line in lines)]
    named = [] if example.name == "m" else [f"metadata: {{name: {example.name}}}"]
    return "\n".join([*named, *(spec if lines else [])])


def _findings(example: Breaks) -> list[Finding]:
    return findings(example.spec, name=example.name, config=example.config)


def main() -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for stale in {path.name for path in TARGET.glob("*.md")} - wanted.keys():
        (TARGET / stale).unlink()
    for name, text in wanted.items():
        (TARGET / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
