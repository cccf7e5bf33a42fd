"""Where digests of embeddings and KV blocks go from one instance to the next: files, or side channels over TCP."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

SECONDS = 10.0


class MissingError(Exception):
    """What was announced is not there."""


class Files:
    """A shared directory with one folder a key, as ECExampleConnector and ExampleConnector lay it out."""

    def __init__(self, directory: str, name: str) -> None:
        self._directory = Path(directory)
        self._name = name

    def put(self, key: str, value: str) -> None:
        """Write it in place, as the real one does. Raises OSError: the volume is full or read-only."""
        folder = self._directory / key
        folder.mkdir(parents=True, exist_ok=True)
        (folder / self._name).write_text(value)

    def get(self, key: str) -> str | None:
        """Read it; None where it is not."""
        try:
            return (self._directory / key / self._name).read_text() or None
        except OSError:
            return None


class SideChannel:
    """A table that others read and write over TCP: one JSON object a line each way."""

    def __init__(self) -> None:
        self.table: dict[str, str] = {}
        self._changed = asyncio.Condition()

    async def listen(self, host: str, port: int) -> None:
        """Serve it on the address that the environment names. Raises OSError: it is not ours, or taken."""
        await asyncio.start_server(self._serve, host, port)

    async def wait(self, key: str, seconds: float = SECONDS) -> str:
        """What is under a key, once it is. Raises MissingError."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: key in self.table)
                return self.table[key]
        except TimeoutError:
            raise MissingError(f"{key} did not come within {seconds:.0f} s") from None

    async def put(self, key: str, value: str) -> None:
        """Keep a value and wake who waits for it."""
        async with self._changed:
            self.table[key] = value
            self._changed.notify_all()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError):
            asked = json.loads(await reader.readline())
            if "put" in asked:
                await self.put(asked["put"], asked["value"])
            writer.write(json.dumps({"value": self.table.get(asked.get("get", ""))}).encode() + b"\n")
            await writer.drain()
        writer.close()


async def call(host: str, port: int, message: Mapping[str, str]) -> str | None:
    """Ask another instance's side channel. Raises MissingError: it cannot be reached."""
    try:
        async with asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(json.dumps(message).encode() + b"\n")
            answer: str | None = json.loads(await reader.readline())["value"]
            writer.close()
            return answer
    except (OSError, ValueError, TimeoutError) as error:
        raise MissingError(f"side channel {host}:{port}: {error!r}") from None
