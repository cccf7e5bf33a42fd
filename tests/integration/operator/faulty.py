"""An API server that fails: a proxy between an operator and the real one, which tests tell what to do to requests."""

import asyncio
import json
import re
import ssl
import threading
from base64 import b64decode
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import aiohttp
import yaml
from aiohttp import web

from hack.cluster.kubectl import Kubectl

WRITES = frozenset({"POST", "PATCH", "PUT", "DELETE"})
CLOSE_SECONDS = 0.25
EXPIRED = 410
_PASSED = ("Authorization", "Content-Type", "Accept", "User-Agent")


@dataclass
class Fault:
    """What happens to some requests. One that ends otherwise than by its own doing goes on to the API server."""

    methods: frozenset[str] = WRITES
    path: str = ""
    """A regular expression that the path with its query holds."""
    every: int = 1
    """Of those, each so many-th, the first of them included."""
    times: int | None = None
    """So often at most."""
    token: str = ""
    """Only of who signs in with it."""
    delay: float = 0.0
    """Seconds before it goes on."""
    status: int = 0
    """Refused with this code, and not passed on."""
    reason: str = ""
    retry_after: int | None = None
    cut: bool = False
    """The connection breaks, and the request is not passed on."""
    lost: bool = False
    """It is passed on, and its answer is lost."""
    held: threading.Event | None = None
    """It waits for this before it goes on."""
    met: int = field(default=0, init=False)
    hits: int = field(default=0, init=False)

    def takes(self, request: web.Request) -> bool:
        """Whether it happens to this request."""
        if request.method not in self.methods or not re.search(self.path, request.path_qs):
            return False
        if self.token and self.token not in request.headers.get("Authorization", ""):
            return False
        self.met += 1
        if (self.met - 1) % self.every or self.hits == self.times:
            return False
        self.hits += 1
        return True

    def refusal(self, request: web.Request) -> web.Response:
        """The answer of an API server in such trouble; of a watch that is too old it tells within the watch."""
        body = {"kind": "Status", "code": self.status, "reason": self.reason, "message": "injected"}
        if self.status == EXPIRED and "watch" in request.query:
            return web.Response(text=json.dumps({"type": "ERROR", "object": body}) + "\n")
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return web.json_response(body, status=self.status, headers=headers)


class FaultyServer:
    """Runs while the context lasts, on a loopback port, without TLS. Methods may be called from the test's thread."""

    def __init__(self, kubectl: Kubectl) -> None:
        config = yaml.safe_load(kubectl.kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._upstream = cluster["server"].rstrip("/")
        self._tls = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
        self._faults: list[Fault] = []
        self._watches: set[asyncio.Task[Any]] = set()
        self._down = False
        self.served: Counter[str] = Counter()
        """Requests by method that came to the API server."""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="faulty-server")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(30), "the faulty server does not start"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    @property
    def url(self) -> str:
        """For a kubeconfig."""
        return f"http://127.0.0.1:{self._port}"

    def add(self, fault: Fault) -> Fault:
        """Let something happen from now on; the first fault that takes a request has it."""
        self._faults.append(fault)
        return fault

    def go_down(self) -> None:
        """Break all watches, and every request that comes."""
        self._down = True
        self.end_watches()

    def come_back(self) -> None:
        """Answer again."""
        self._down = False

    def end_watches(self) -> None:
        """Break the watches that are open."""
        self._loop.call_soon_threadsafe(self._end_watches)

    def _end_watches(self) -> None:
        for task in list(self._watches):
            task.cancel()

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        connector = aiohttp.TCPConnector(ssl=self._tls, limit=0)
        async with aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False
        ) as self._session:
            app = web.Application(client_max_size=64 << 20)
            app.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self._port = runner.addresses[0][1]
            self._ready.set()
            await self._stop.wait()
            self._end_watches()
            await runner.cleanup()
            await connector.close(abort_ssl=True)
            await asyncio.sleep(CLOSE_SECONDS)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        fault = next((fault for fault in self._faults if fault.takes(request)), None)
        if self._down or (fault is not None and fault.cut):
            return _broken(request)
        if fault is not None:
            if fault.held is not None:
                await asyncio.to_thread(fault.held.wait, 60)
            await asyncio.sleep(fault.delay)
            if fault.status:
                return fault.refusal(request)
        self.served[request.method] += 1
        answer = await self._pass_on(request)
        return _broken(request) if fault is not None and fault.lost else answer

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        headers = {name: request.headers[name] for name in _PASSED if name in request.headers}
        body = await request.read()
        async with self._session.request(
            request.method, self._upstream + request.raw_path, data=body or None, headers=headers
        ) as upstream:
            if request.query.get("watch") in ("1", "true"):
                return await self._stream(request, upstream)
            content_type = upstream.headers.get("Content-Type", "application/json")
            content = await upstream.read()
            encoding = {k: v for k, v in upstream.headers.items() if k in ("Content-Encoding", "Retry-After")}
            return web.Response(
                body=content, status=upstream.status, headers={"Content-Type": content_type, **encoding}
            )

    async def _stream(self, request: web.Request, upstream: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(status=upstream.status, headers={"Content-Type": "application/json"})
        await response.prepare(request)
        task = asyncio.create_task(_copy(upstream, response))
        self._watches.add(task)
        try:
            await task
        except (asyncio.CancelledError, ConnectionError, aiohttp.ClientError):
            task.cancel()
            _broken(request)
        finally:
            self._watches.discard(task)
        return response


async def _copy(upstream: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
    async for chunk in upstream.content.iter_any():
        await response.write(chunk)
    await response.write_eof()


def _broken(request: web.Request) -> web.Response:
    """End the connection without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
