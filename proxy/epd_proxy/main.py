"""The command `epd-proxy`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from epd_proxy.options import Options, OptionsError, parser, read_options
from epd_proxy.process import serve
from epd_proxy.workers import run_workers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the proxy until SIGTERM or SIGINT; return the exit status."""
    commands = parser()
    try:
        options = read_options(commands.parse_args(arguments))
    except OptionsError as error:
        print(f"epd-proxy: {error}", file=sys.stderr)  # noqa: T201
        return 2
    return run(options)


def run(options: Options) -> int:
    """Serve in this process, or in several."""
    return serve(options) if options.config.listen.workers == 1 else run_workers(options)
