"""`epd render`: every Kubernetes object."""

import re
import sys

import click

from epd_operator.api.deployment import NAMESPACE
from epd_operator.api.names import MAX_LABEL
from epd_operator.cli.findings import exit_status, judge_files, print_findings
from epd_operator.cli.yaml_output import dump_all
from epd_operator.manifests import render
from epd_operator.plan.build import build


def _namespace(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is not None and (len(value) > MAX_LABEL or not re.fullmatch(NAMESPACE, value)):
        raise click.BadParameter("use at most 63 lower-case letters, digits and dashes")
    return value


@click.command("render")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-n", "--namespace", callback=_namespace, help="Namespace of objects that name none. Default: default.")
def command(files: tuple[str, ...], namespace: str | None) -> None:
    """Print every Kubernetes object of FILEs as YAML, in apply order; findings go to standard error."""
    verdicts, readable = judge_files(files)
    for verdict in verdicts:
        print_findings(verdict, err=True)
        if verdict.deployment is None or not verdict.accepted:
            continue
        deployment = verdict.deployment
        if namespace is not None and deployment.metadata.namespace is None:
            metadata = deployment.metadata.model_copy(update={"namespace": namespace})
            deployment = deployment.model_copy(update={"metadata": metadata})
        click.echo(dump_all(render(build(deployment))), nl=False)
    sys.exit(exit_status(verdicts, readable=readable))
