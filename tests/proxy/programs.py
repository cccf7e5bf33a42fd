"""The proxy and simulated engines as processes of their own, for what can't be seen from inside."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.simulator.client import post
from tests.simulator.requests import chat, new_mark

ROOT = Path(__file__).parents[2]
END_SECONDS = 30


@dataclass
class Program:
    """`epd-proxy`, serving."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def peak(self) -> int:
        """The most bytes that it ever had in memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))

    @property
    def children(self) -> list[int]:
        """Its processes."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def until(what: Callable[[], Any], seconds: float = 30.0) -> None:
    """Wait until something is the case."""
    async with asyncio.timeout(seconds):
        while not what():  # noqa: ASYNC110  what is waited for sets no event
            await asyncio.sleep(0.02)


async def until_served(program: Program) -> None:
    """Wait until the proxy knows its engines."""
    async with asyncio.timeout(30):
        while (await post(program.port, chat(new_mark()))).status != 200:  # noqa: ASYNC110  as above
            await asyncio.sleep(0.1)


@contextlib.contextmanager
def engines(**counts: int) -> Iterator[dict[str, list[str]]]:
    """Simulated engines; yields their URLs by role."""
    command = [sys.executable, "-m", "tests.simulator"]
    for role, count in counts.items():
        command += [f"--{role}", str(count)]
    with _ended(subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)) as process:
        assert process.stdout
        yield json.loads(process.stdout.readline())


@contextlib.contextmanager
def proxy(folder: Path, urls: dict[str, list[str]], config: dict[str, Any], *options: str) -> Iterator[Program]:
    """`epd-proxy` before engines, with a configuration; `folder` takes its file."""
    file = folder / "proxy.yaml"
    file.write_text(json.dumps(config))
    command = [Path(sys.executable).with_name("epd-proxy"), "--config", file, "--host", "127.0.0.1", "--port", "0"]
    for role, of_role in urls.items():
        command += [f"--{role}", ",".join(of_role)] if of_role else []
    with _ended(subprocess.Popen([*map(str, command), *options], stdout=subprocess.PIPE)) as process:
        assert process.stdout
        line = process.stdout.readline().decode()
        yield Program(process, int(line.rpartition(":")[2]))


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    with process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
