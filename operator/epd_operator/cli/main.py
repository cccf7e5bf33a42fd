"""Entry point of `epd` and `kubectl epd`: commands are imported when they are called, so that each starts quickly."""

import importlib
import io
import sys

import click

from epd_operator import __version__
from epd_operator.api.finding import printable

EXIT_UNWRITABLE = 2
_COMMANDS = {
    "validate": ("epd_operator.cli.validate", "Check files; say what is wrong, why, and what to do."),
    "explain": ("epd_operator.cli.explain", "Say in words what a file leads to, each flag with its reason."),
    "render": ("epd_operator.cli.render", "Print every Kubernetes object as YAML, in apply order."),
    "run": ("epd_operator.cli.run", "Run the plan as processes on this machine."),
    "rules": ("epd_operator.cli.rules", "List the rules: what they forbid, why, and how it is known."),
    "crd": ("epd_operator.cli.crd", "Print the CustomResourceDefinitions."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, _ = _COMMANDS[cmd_name]
        command: click.Command = importlib.import_module(module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="epd")
def cli() -> None:
    """Encode/prefill/decode serving of multimodal models on vLLM."""


def main() -> None:
    """Run the command line; exit status 2 for wrong usage and unreadable input, 1 for findings."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what the terminal's encoding lacks is shown escaped
            stream.reconfigure(errors="backslashreplace")
    try:
        cli(prog_name="epd")
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stderr.close()
        sys.exit(1)
    except OSError as error:  # a full disk, a directory that cannot be made
        place = f"{error.filename}: " if error.filename else "output: "
        click.echo(printable(f"error: {place}{(error.strerror or str(error)).lower()}"), err=True)
        sys.exit(EXIT_UNWRITABLE)
