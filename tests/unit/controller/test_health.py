"""Probes say what is wrong; metrics are Prometheus' text."""

import aiohttp
from prometheus_client import CollectorRegistry, Gauge

from epd_operator.controller.health import serve_health
from hack.cluster.ports import free_ports


async def test_probes_and_metrics() -> None:
    said = {"live": "", "ready": "not read yet"}
    registry = CollectorRegistry()
    Gauge("some_gauge", "what it is", registry=registry).set(3)
    with free_ports() as ports:
        runner = await serve_health(
            "127.0.0.1", ports.scheduler, live=lambda: said["live"], ready=lambda: said["ready"], registry=registry
        )
        try:
            async with aiohttp.ClientSession(f"http://127.0.0.1:{ports.scheduler}") as client:

                async def ask(path: str) -> tuple[int, str]:
                    async with client.get(path) as response:
                        return response.status, await response.text()

                assert await ask("/healthz") == (200, "ok\n")
                assert await ask("/readyz") == (503, "not read yet\n")
                said.update(live="a reconcile does not end", ready="")
                assert await ask("/healthz") == (503, "a reconcile does not end\n")
                assert await ask("/readyz") == (200, "ok\n")
                status, text = await ask("/metrics")
                assert status == 200
                assert "\nsome_gauge 3.0\n" in text
        finally:
            await runner.cleanup()
