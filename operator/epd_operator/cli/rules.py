"""`epd rules`: every rule as data."""

import json
import textwrap
from typing import Any

import click

from epd_operator.cli.findings import output_option
from epd_operator.engine.rules import RULES
from epd_operator.engine.rules.rule import Rule


@click.command("rules")
@output_option
def command(output: str) -> None:
    """List the rules: what they forbid, why, for which vLLM releases, and how it is known."""
    if output == "json":
        click.echo(json.dumps([as_json(rule) for rule in RULES], indent=2))
        return
    for rule in RULES:
        proved = ", proved against vLLM" if rule.proved else ""
        click.echo(f"{click.style(rule.id, bold=True)}  {rule.severity}, {rule.kind}, {releases(rule)}{proved}")
        for text in (rule.what, rule.why, f"Source: {rule.source}"):
            click.echo(textwrap.fill(text, 110, initial_indent="    ", subsequent_indent="    "))


def as_json(rule: Rule) -> dict[str, Any]:
    """One rule in the shape of `epd rules -o json`."""
    return {
        "id": rule.id,
        "severity": str(rule.severity),
        "kind": str(rule.kind),
        "releases": releases(rule),
        "what": rule.what,
        "why": rule.why,
        "source": rule.source,
        "proved": rule.proved,
    }


def releases(rule: Rule) -> str:
    """The releases that a rule holds for, in words."""
    since = "all releases" if rule.since.minor_key <= (0, 28) else f"from {rule.since.minor_text}"
    return f"{since} before {rule.until.minor_text}" if rule.until else since
