"""Many slow clients: the proxy's memory stays within its budget, and all get right answers in the end.

    python -m tests.proxy.dawdling --clients 2000

Most send a body and stop halfway; what does not fit into the budget is refused at once. Some ask for a long stream and
do not read it. While all dawdle, others are served. In the end the slow ones go on, and their answers are
right.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections import Counter
from pathlib import Path

import uvloop

from tests.proxy import programs
from tests.proxy.programs import Program
from tests.simulator.client import CHAT, Client, Response
from tests.simulator.requests import chat, data_url, image, new_mark

MIB = 1024 * 1024
BUDGET = 64 * MIB
BODY = MIB
STREAM = 8 * MIB
"""Bytes of a stream: more than the kernel takes for a client that does not read."""
CONNECTION = 64 * 1024
"""Bytes that a connection may cost beside its body: its objects, and the piece of a head that came with it."""
READER = 512 * 1024
"""Bytes that the proxy may hold for a client that does not read: one read from the engine above the high-water mark."""
PATIENCE = 120.0
ANY_MARK = b"m99999999999"
TEMPLATE = json.dumps(chat(ANY_MARK.decode(), image(data_url(ANY_MARK.decode(), BODY)))).encode()


def memory_allowed(before: int, clients: int) -> int:
    """Return the most bytes that the proxy may have in memory."""
    return before + BUDGET + clients * CONNECTION + readers_of(clients) * READER


def readers_of(clients: int) -> int:
    """Return how many ask for a stream: not more than a simulated engine can keep busy."""
    return min(clients // 10, 40)


async def dawdle(program: Program, clients: int) -> Counter[str]:
    """Run; return how the slow clients ended. Raises AssertionError for too much memory or a wrong answer."""
    await programs.until_served(program)
    before = program.peak
    senders = [await Client.connect(program.port) for _ in range(clients - readers_of(clients))]
    readers = [await Client.connect(program.port) for _ in range(readers_of(clients))]
    sent = [await begin(client) for client in senders]
    for client in readers:
        client.reader._transport.pause_reading()  # type: ignore[attr-defined]  # the client does not read
        ask = chat(new_mark(), tokens=STREAM // 4096, stream=True, padding=4096)
        client.send("POST", CHAT, json.dumps(ask).encode())
    for _ in range(20):
        await ask_meanwhile(program)
    ends: Counter[str] = Counter()
    for client, (mark, answering) in zip(senders, sent, strict=True):
        ends[await finish(client, mark, answering)] += 1
    for client in readers:
        client.reader._transport.resume_reading()  # type: ignore[attr-defined]
        assert await read_stream(client) == STREAM // 4096
        ends["streamed"] += 1
    peak, allowed = program.peak, memory_allowed(before, clients)
    assert peak <= allowed, f"{peak:,} bytes in memory; {allowed:,} are allowed"
    ends[f"MiB at most, of {allowed // MIB}"] = peak // MIB
    return ends


async def read_stream(client: Client) -> int:
    """Read a stream to its end; return how many events say something."""
    count, end = 0, b""
    try:
        async with asyncio.timeout(PATIENCE):
            while not end.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"):
                data = await client.reader.read(1 << 18)
                assert data, f"cut off: {end!r}"
                count += (end[-9:] + data).count(b'"content"') - end[-9:].count(b'"content"')
                end = (end + data)[-40:]
    finally:
        await client.close()
    return count


async def ask_meanwhile(program: Program) -> None:
    """Ask for text as somebody who is not slow."""
    mark = new_mark()
    client = await Client.connect(program.port)
    client.send("POST", CHAT, json.dumps(chat(mark)).encode())
    async with asyncio.timeout(PATIENCE):
        assert mark in (await client.response()).text
    await client.close()


def body_of(mark: str) -> bytes:
    """Return a request of its own."""
    return TEMPLATE.replace(ANY_MARK, mark.encode())


async def begin(client: Client) -> tuple[str, asyncio.Task[Response]]:
    """Send half of a body; return its mark, and what waits for the answer, for a refusal comes at once."""
    mark = new_mark()
    body = body_of(mark)
    client.send("POST", CHAT, body[: len(body) // 2], {"Content-Length": str(len(body))})
    answering = asyncio.create_task(client.response())
    await client.writer.drain()
    await asyncio.sleep(0)
    return mark, answering


async def finish(client: Client, mark: str, answering: asyncio.Task[Response]) -> str:
    """Send the rest of a body, unless it is not wanted; return how it ended."""
    try:
        if not answering.done():
            client.writer.write(body_of(mark)[len(TEMPLATE) // 2 :])
        async with asyncio.timeout(PATIENCE):
            answer = await answering
    finally:
        await client.close()
    if answer.status == 200:
        assert mark in answer.text
        return "answered"
    assert (answer.status, "retry-after" in answer.headers) == (503, True), answer.text
    return "refused"


async def run(clients: int, folder: Path) -> Counter[str]:
    """Start the programs and dawdle."""
    limits = {"inFlightSize": BUDGET, "inFlightRequests": 2 * clients, "connections": 4 * clients + 100}
    patient = dict.fromkeys(("clientBodySeconds", "idleSeconds", "firstByteSeconds", "probeSeconds"), PATIENCE)
    config = {"limits": limits, "timeouts": patient}
    with programs.engines(encode=1, decode=1) as urls, programs.proxy(folder, urls, config) as program:
        return await dawdle(program, clients)


def main() -> None:
    """Dawdle from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=2000)
    clients = parser.parse_args().clients
    with tempfile.TemporaryDirectory() as folder:
        for end, count in uvloop.run(run(clients, Path(folder))).most_common():
            print(f"{count:8} {end}")  # noqa: T201


if __name__ == "__main__":
    main()
