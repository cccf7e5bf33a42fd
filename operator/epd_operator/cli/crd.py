"""`epd crd`: the CustomResourceDefinitions."""

from pathlib import Path

import click

from epd_operator.api.crd import custom_resource_definitions
from epd_operator.cli.yaml_output import dump_all

_HEADER = "# Made by `make crds` from the types in operator/epd_operator/api; do not edit.\n"


@click.command("crd")
@click.option(
    "--output-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write one file a definition there instead of printing.",
)
def command(output_dir: Path | None) -> None:
    """Print the CustomResourceDefinitions."""
    definitions = custom_resource_definitions()
    if output_dir is None:
        click.echo(dump_all(definitions), nl=False)
        return
    output_dir.mkdir(parents=True, exist_ok=True)
    for definition in definitions:
        file = output_dir / f"{definition['metadata']['name']}.yaml"
        file.write_text(_HEADER + dump_all([definition]))
        click.echo(str(file))
