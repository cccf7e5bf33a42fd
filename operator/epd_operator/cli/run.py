"""`epd run`: the plan as processes on this machine."""

import os
import sys
from pathlib import Path

import click

from epd_operator.api.finding import printable
from epd_operator.cli.findings import exit_status, judge_files, output_option, print_findings
from epd_operator.local.launch import Options, launch
from epd_operator.local.reporter import choose
from epd_operator.plan.build import build

EXIT_USAGE = 2
_DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path, resolve_path=True)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path, resolve_path=True)


@click.command("run")
@click.argument("file", metavar="FILE")
@click.option("--models", type=_DIRECTORY, help="Directory that stands for the model volume.")
@click.option("--vllm", help="The vllm program.  [default: $EPD_VLLM, then PATH]")
@click.option("--port", type=click.IntRange(0, 65535), help="0: any free one.  [default: 8000, or any free one]")
@click.option("--name", help="Which EPDDeployment, where FILE holds several.")
@click.option("--api-keys-file", type=_FILE, help="Keys that clients may present.  [default: none is asked]")
@click.option("--logs", type=click.Path(file_okay=False, path_type=Path), help="Keep the logs in this directory.")
@output_option
def command(  # noqa: PLR0917  (click calls it by name)
    file: str,
    models: Path | None,
    vllm: str | None,
    port: int | None,
    name: str | None,
    api_keys_file: Path | None,
    logs: Path | None,
    output: str,
) -> None:
    """Start FILE (- is standard input) as processes on this machine: real vLLM instances and the proxy.

    When every role serves, the last line is `ready http://...`. Ctrl-C ends all of it and leaves nothing behind; so
    does the death of any instance, with the reason and exit status 1.
    """
    verdicts, readable = judge_files((file,), local=True)
    for verdict in verdicts:
        print_findings(verdict, err=True)
    chosen = [verdict for verdict in verdicts if name is None or verdict.document.name == name]
    if not readable or not all(verdict.accepted for verdict in chosen):
        sys.exit(exit_status(chosen, readable=readable))
    if len(chosen) != 1 or chosen[0].deployment is None:
        names = ", ".join(verdict.document.name for verdict in verdicts)
        click.echo(printable(f"error: {file} holds {names}; choose one of them by --name"), err=True)
        sys.exit(EXIT_USAGE)
    options = Options(models, vllm, port, api_keys_file, logs)
    reporter = choose(output)
    try:
        status = launch(build(chosen[0].deployment, local=True), options, reporter, os.environ)
    finally:
        reporter.close()
    sys.exit(status)
