"""Simulated engines as a process of their own.

    python -m tests.simulator --encode 2 --decode 1 --minor 0.33

Prints one JSON line with the base URLs by role, and ends with its standard input or a signal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys

import uvloop

from tests.simulator.answers import MODEL
from tests.simulator.engine import Engine, World

ROLES = ("encode", "prefill", "decode")


async def run(arguments: argparse.Namespace) -> None:
    """Serve until told to end."""
    counts = {role: getattr(arguments, role) for role in ROLES}
    world = World(
        minor=arguments.minor,
        embeddings_connector=arguments.embeddings_connector,
        kv_connector=arguments.kv_connector,
        key=arguments.key,
        roles=frozenset(role for role, count in counts.items() if count),
        keep=False,
    )
    engines = {role: [Engine(world, role, number) for number in range(count)] for role, count in counts.items()}
    for engine in (engine for group in engines.values() for engine in group):
        engine.model = arguments.model
        await engine.start()
    print(json.dumps({role: [engine.url for engine in group] for role, group in engines.items()}), flush=True)  # noqa: T201
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loop.add_reader(sys.stdin.fileno(), lambda: None if os.read(sys.stdin.fileno(), 1) else ended.set())
    await ended.wait()
    if world.violations:
        print(json.dumps(sorted(set(world.violations))), file=sys.stderr)  # noqa: T201


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    for role in ROLES:
        parser.add_argument(f"--{role}", type=int, default=0)
    parser.add_argument("--minor", default="0.33")
    parser.add_argument("--embeddings-connector", default="ECCPUConnector")
    parser.add_argument("--kv-connector", default="NixlConnector")
    parser.add_argument("--model", default=MODEL, help="the served model")
    parser.add_argument("--key", default="", help="the API key that is asked for")
    uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
