"""Microseconds of the proxy's own code for one text request, without sockets: where an optimisation shows first.

python benchmarks/proxy/hotpath.py [--profile] [--requests N]
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from pathlib import Path

import uvloop

from epd_proxy.auth import ApiKeys
from epd_proxy.config import ProxyConfig, Role
from epd_proxy.core import Core
from epd_proxy.endpoints import Endpoint, State
from epd_proxy.pool import EnginePool
from epd_proxy.process import settle_memory
from epd_proxy.server import ClientConnection
from epd_proxy.service import Service
from epd_proxy.upstream import EngineConnection

BODY = (
    b'{"model":"sim","messages":[{"role":"user","content":"m00000000001 Describe the picture."}],'
    b'"stream":false,"max_tokens":1}'
)
REQUEST = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nContent-Type: application/json\r\n"
    b"Authorization: Bearer client-key\r\nContent-Length: %d\r\n\r\n%b"
) % (len(BODY), BODY)
ANSWER = b'{"id":"chatcmpl-d","object":"chat.completion","choices":[{"message":{"content":"m00000000001"}}]}'
RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(ANSWER), ANSWER)


BATCH = 50
"""Requests measured together; the best batch tells the cost on a machine that is shared."""


class NullTransport:
    """Takes what is written, as a transport does."""

    def __init__(self) -> None:
        self.writes = 0

    def write(self, _: bytes) -> None:
        """Count."""
        self.writes += 1

    def get_write_buffer_size(self) -> int:
        """Nothing waits."""
        return 0

    def is_closing(self) -> bool:
        """Never."""
        return False

    def abort(self) -> None:
        """Do nothing."""


def exchange(client: ClientConnection, engine: EngineConnection) -> None:
    """One request and its answer."""
    client.data_received(REQUEST)
    engine.data_received(RESPONSE)


async def run(requests: int, profile: bool, keys: ApiKeys) -> None:
    core = Core(ProxyConfig(), bytes(32))
    service = Service(core, keys)
    pool = EnginePool("127.0.0.1", 1, "decode", core.pool_times)
    url = "http://127.0.0.1:1"
    core.fleet.add(Endpoint(url, "127.0.0.1", 1, Role.DECODE, pool, "r", version="0.33.0", state=State.UP))
    client, engine = ClientConnection(service), EngineConnection(pool)
    client.connection_made(NullTransport())  # type: ignore[arg-type]
    engine.connection_made(NullTransport())  # type: ignore[arg-type]
    pool.give(engine)
    for _ in range(2000):
        exchange(client, engine)
    settle_memory()
    profiler = cProfile.Profile()
    if profile:
        profiler.enable()
    best = float("inf")
    for _ in range(requests // BATCH):
        started = time.perf_counter()
        for _ in range(BATCH):
            exchange(client, engine)
        best = min(best, time.perf_counter() - started)
    profiler.disable()
    print(f"{best / BATCH * 1e6:.2f} us a request, in the best of {requests // BATCH} batches")
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--profile", action="store_true")
    arguments = parser.parse_args()
    with tempfile.NamedTemporaryFile() as file:
        Path(file.name).write_text("client-key")
        keys = ApiKeys(file=file.name)
    uvloop.run(run(arguments.requests, arguments.profile, keys))


if __name__ == "__main__":
    main()
