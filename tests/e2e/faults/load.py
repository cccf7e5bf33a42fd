"""Clients of a deployment: a fixed number of requests in flight, by the OpenAI client, each answer checked."""

import asyncio
import threading
import time
from dataclasses import dataclass
from typing import Any, Self

import httpx2
import openai

from tests.e2e.simulated import MODEL
from tests.simulator.requests import chat, data_url, image, new_mark
from tests.simulator.vllm.answers import expected

TIMEOUT_SECONDS = 60
TOKENS = 12
PAUSE_SECONDS = 0.2
"""After a failure, as a client would wait: one that cannot be reached is not asked a thousand times a second."""


@dataclass(frozen=True)
class Outcome:
    """How one request went."""

    begun: float
    ended: float
    """Seconds of the monotonic clock."""
    error: str = ""
    """What the client raised; empty where it got a whole answer."""
    told: bool = False
    """The error is one in OpenAI's shape, and not a connection that broke."""
    wrong: bool = False
    """A whole answer that is not the answer to this request."""


class Load:
    """Requests without pause, while the context lasts. No request is sent twice: what fails is seen."""

    def __init__(self, url: str, in_flight: int) -> None:
        self.outcomes: list[Outcome] = []
        self._url = url
        self._in_flight = in_flight
        self._ended = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="load", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Let the requests in flight end."""
        self._ended.set()
        self._thread.join()

    def wait_for(self, count: int, seconds: float = 120) -> None:
        """Wait until so many more requests were answered as they should be. Raises TimeoutError."""
        deadline, before = time.monotonic() + seconds, self._good()
        while self._good() < before + count:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._good() - before} of {count} requests were answered in {seconds:.0f} s")
            time.sleep(0.1)

    def _good(self) -> int:
        return sum(not outcome.error and not outcome.wrong for outcome in self.outcomes)

    async def _run(self) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=self._in_flight)
        transport = openai.DefaultAsyncHttpxClient(limits=limits, timeout=TIMEOUT_SECONDS, trust_env=False)
        async with openai.AsyncOpenAI(
            base_url=f"{self._url}/v1", api_key="none", max_retries=0, http_client=transport
        ) as client:
            await asyncio.gather(*(self._client(client, number) for number in range(self._in_flight)))

    async def _client(self, client: openai.AsyncOpenAI, number: int) -> None:
        while not self._ended.is_set():
            mark = new_mark()
            body = {**chat(mark, image(data_url(mark)), tokens=TOKENS, stream=number % 2 == 0), "model": MODEL}
            outcome = await _ask(client, body)
            self.outcomes.append(outcome)
            if outcome.error:
                await asyncio.sleep(PAUSE_SECONDS)


async def _ask(client: openai.AsyncOpenAI, body: dict[str, Any]) -> Outcome:
    begun = time.monotonic()
    try:
        said = await _say(client, body)
    except openai.APIConnectionError as error:
        return Outcome(begun, time.monotonic(), f"{error} {error.__cause__!r}")
    except openai.APIError as error:
        return Outcome(begun, time.monotonic(), str(error), told=isinstance(error.body, dict))
    except httpx2.HTTPError as error:  # the client hands on what breaks a stream
        return Outcome(begun, time.monotonic(), repr(error))
    return Outcome(begun, time.monotonic(), wrong=said != expected(body))


async def _say(client: openai.AsyncOpenAI, body: dict[str, Any]) -> str:
    answer = await client.chat.completions.create(**body)
    if not body["stream"]:
        return str(answer.choices[0].message.content)
    return "".join([chunk.choices[0].delta.content or "" async for chunk in answer if chunk.choices])
