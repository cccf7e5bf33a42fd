"""Findings on the terminal and as JSON, and the exit status that they make."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from epd_operator.api.deployment import EPDDeployment
from epd_operator.api.finding import Finding, Severity, has_errors, printable
from epd_operator.api.parse import parse
from epd_operator.cli.model_config import model_config_of
from epd_operator.cli.reader import Document, Unreadable, read
from epd_operator.engine.rules import check
from epd_operator.engine.wiring import wire

EXIT_FINDINGS = 1
EXIT_UNREADABLE = 2

output_option = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="Text for people, JSON for programs."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One document and what is wrong with it."""

    document: Document
    deployment: EPDDeployment | None
    """None where its shape is wrong."""
    findings: tuple[Finding, ...]

    @property
    def accepted(self) -> bool:
        """Whether a plan can be made of it."""
        return self.deployment is not None and not has_errors(self.findings)

    def as_json(self) -> list[dict[str, Any]]:
        """The findings with the place of their document."""
        place = {"file": self.document.file, "document": self.document.index, "name": self.document.name}
        return [finding.as_json() | place for finding in self.findings]


def judge(document: Document, *, local: bool = False, models: Path | None = None) -> Verdict:
    """Parse a document and put it before all rules; `models` stands for the model volume."""
    parsed = parse(document.content)
    if parsed.deployment is None:
        return Verdict(document, None, parsed.findings)
    config = model_config_of(parsed.deployment, models)
    findings = check(wire(parsed.deployment, local=local, model_config=config))
    return Verdict(document, parsed.deployment, (*parsed.findings, *findings))


def judge_files(
    files: tuple[str, ...], *, local: bool = False, models: Path | None = None
) -> tuple[list[Verdict], bool]:
    """The verdict on every document of every file, and whether all files could be read; problems go to stderr."""
    verdicts, readable = [], True
    for file in files:
        try:
            verdicts += [judge(document, local=local, models=models) for document in read(file)]
        except Unreadable as error:
            readable = False
            click.echo(f"error: {error}", err=True)
    return verdicts, readable


def exit_status(verdicts: list[Verdict], *, readable: bool) -> int:
    """2 where a file was unreadable, 1 where a document was refused, else 0."""
    if not readable:
        return EXIT_UNREADABLE
    return 0 if all(verdict.accepted for verdict in verdicts) else EXIT_FINDINGS


def print_findings(verdict: Verdict, *, err: bool = False) -> None:
    """One line a finding."""
    for finding in verdict.findings:
        colour = "red" if finding.severity is Severity.ERROR else "yellow"
        where = printable(f"{verdict.document.file}: {verdict.document.name}:")
        click.echo(f"{where} {click.style(str(finding.severity), fg=colour)}: {finding}", err=err)
