"""Engines are killed, clients leave and dawdle, for a while: each request ends in a right answer or a right error.

python -m tests.proxy.soaking --seconds 1200
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from typing import Any

import uvloop

from tests.proxy.deployment import Deployment
from tests.simulator.client import CHAT, Client, Response
from tests.simulator.faults import Fault, Mode
from tests.simulator.requests import chat, data_url, image, new_mark

CLIENTS = 24
ERRORS = (500, 502, 503, 504)
PASSING = (
    (Mode.STATUS, 500),
    (Mode.STATUS, 503),
    (Mode.CLOSE, 0),
    (Mode.STALE, 0),
    (Mode.DIE, 2),
    (Mode.TEAR, 1),
    (Mode.GARBAGE, 0),
    (Mode.NOT_JSON, 0),
    (Mode.NO_METADATA, 0),
    (Mode.NO_HANDLES, 0),
    (Mode.SLOW, 30),
    (Mode.STALL, 1),
    (Mode.HANG, 0),
)
TIMEOUTS = {
    "encodeSeconds": 1.0,
    "prefillSeconds": 1.0,
    "firstByteSeconds": 1.0,
    "idleSeconds": 0.5,
    "queueSeconds": 0.5,
}


class Soak:
    """One run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.proxy = Deployment("E+P+D", encoders=2, prefills=2, decoders=3, config={"timeouts": TIMEOUTS})
        self.ends: Counter[str] = Counter()
        self.wrong: list[str] = []

    async def run(self, seconds: float) -> Counter[str]:
        """Run, and return how requests ended. Raises AssertionError for a wrong answer or a leak."""
        await self.proxy.start()
        self.proxy.world.keep = False  # they are many
        try:
            tasks = len(asyncio.all_tasks())
            until = time.monotonic() + seconds
            await asyncio.gather(
                self._kill(until), self._disturb(until), *(self._client(until) for _ in range(CLIENTS))
            )
            for engine in self.proxy.all_engines():
                await engine.stop()
                await engine.start()
            await self.proxy.check_leaks()
            await self.proxy.until(lambda: len(asyncio.all_tasks()) <= tasks + 2, 10)
            await self.proxy.until(lambda: self.proxy.core.fleet.ready)
            mark = new_mark()
            assert mark in (await self.proxy.post(chat(mark, image(data_url(mark))))).text
            assert not self.wrong, self.wrong[:5]
        finally:
            await self.proxy.stop()
        return self.ends

    async def _kill(self, until: float) -> None:
        while time.monotonic() < until:
            await asyncio.sleep(self.random.uniform(0.05, 0.5))
            role = self.random.choice(["encode", "prefill", "decode"])
            engine = self.random.choice(self.proxy.engines[role])
            await engine.stop()
            await asyncio.sleep(self.random.uniform(0, 0.3))
            await engine.start()

    async def _disturb(self, until: float) -> None:
        while time.monotonic() < until:
            await asyncio.sleep(self.random.uniform(0.01, 0.1))
            mode, argument = self.random.choice(PASSING)
            # What decode says goes through unread, whatever it is.
            roles = ["encode", "prefill"] if mode is Mode.NOT_JSON else ["encode", "prefill", "decode"]
            role = self.random.choice(roles)
            self.proxy.world.faults = [f for f in self.proxy.world.faults if f.count]
            self.proxy.world.faults.append(Fault(role, mode, argument, count=self.random.randrange(1, 4)))

    async def _client(self, until: float) -> None:
        while time.monotonic() < until:
            mark = new_mark()
            tokens = self.random.randrange(1, 12)
            stream = self.random.random() < 0.6
            images = [
                image(data_url(mark, self.random.choice([500, 6000, 300_000]), n))
                for n in range(self.random.choice([0, 1, 1, 2]))
            ]
            body = chat(mark, *images, tokens=tokens, stream=stream)
            try:
                async with asyncio.timeout(30):
                    self.ends[await self._request(mark, tokens, body, stream=stream)] += 1
            except (TimeoutError, ConnectionError, AssertionError) as error:
                self.wrong.append(f"{type(error).__name__}: {error}")

    async def _request(self, mark: str, tokens: int, body: dict[str, Any], *, stream: bool) -> str:
        client = await Client.connect(self.proxy.port)
        try:
            data = json.dumps(body).encode()
            behaviour = self.random.random()
            client.send(
                "POST", CHAT, data if behaviour > 0.1 else data[: len(data) // 2], {"Content-Length": str(len(data))}
            )
            if behaviour < 0.1:
                await asyncio.sleep(self.random.uniform(0, 0.05))
                return "left in its body"
            if behaviour < 0.25:
                await asyncio.sleep(self.random.uniform(0, 0.1))
                return "left"
            if behaviour < 0.35:
                await asyncio.sleep(self.random.uniform(0, 0.3))
            return verdict(await client.response(), mark, tokens, stream=stream)
        finally:
            await client.close()


def verdict(answer: Response, mark: str, tokens: int, *, stream: bool) -> str:
    """Return what kind of right end it is; raises AssertionError when it is none."""
    assert answer.complete, f"cut off: {answer.status} {answer.text[-100:]}"
    if answer.status != 200:
        assert answer.status in ERRORS, f"{answer.status} {answer.text[:200]}"
        assert answer.error
        return str(answer.status)
    if not stream:
        assert mark in answer.text, "an answer of another request"
        return "answered"
    events = answer.events
    assert events, "an empty stream"
    assert events[-1] == "[DONE]"
    if '"error"' in events[-2:-1][0] if len(events) > 1 else False:
        assert answer.text.count(mark) == len(events) - 2
        return "broken stream"
    assert answer.text.count(mark) == tokens, "a stream of another request, or not whole"
    return "streamed"


def main() -> None:
    """Soak from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    ends = uvloop.run(Soak(arguments.seed).run(arguments.seconds))
    for end, count in ends.most_common():
        print(f"{count:8} {end}")  # noqa: T201


if __name__ == "__main__":
    main()
