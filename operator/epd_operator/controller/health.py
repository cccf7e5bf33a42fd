"""Probes and metrics over HTTP."""

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

Check = Callable[[], str]
"""Why the process is not well; empty if it is."""


async def serve_health(
    address: str, port: int, *, live: Check, ready: Check, registry: CollectorRegistry
) -> web.AppRunner:
    """Serve /healthz, /readyz and /metrics. Returns what `cleanup()` ends. Raises OSError: the port is taken."""

    async def healthz(_: web.Request) -> web.Response:
        return _answer(live())

    async def readyz(_: web.Request) -> web.Response:
        return _answer(ready())

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, address, port).start()
    return runner


def _answer(problem: str) -> web.Response:
    return web.Response(status=503 if problem else 200, text=f"{problem or 'ok'}\n")
