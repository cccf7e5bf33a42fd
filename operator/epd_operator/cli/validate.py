"""`epd validate`: the verdict of all rules, before any pod."""

import json
import sys
from pathlib import Path

import click

from epd_operator.api.finding import printable
from epd_operator.cli.findings import exit_status, judge_files, output_option, print_findings
from epd_operator.cli.model_config import models_option


@click.command("validate")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--local", is_flag=True, help="Judge for `epd run` instead of for a cluster.")
@models_option
@output_option
def command(files: tuple[str, ...], output: str, models: Path | None, *, local: bool) -> None:
    """Check FILEs (- is standard input) and say what is wrong, why, and what to do.

    Exit status: 0 without errors (warnings do not count), 1 with findings, 2 for input that cannot be read.
    """
    verdicts, readable = judge_files(files, local=local, models=models)
    if output == "json":
        click.echo(json.dumps([finding for verdict in verdicts for finding in verdict.as_json()], indent=2))
    else:
        for verdict in verdicts:
            print_findings(verdict)
            if verdict.accepted:
                click.echo(printable(f"{verdict.document.file}: {verdict.document.name}: ok"))
    sys.exit(exit_status(verdicts, readable=readable))
