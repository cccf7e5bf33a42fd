"""The proxy in this process, before simulated engines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import uvloop

from tests.proxy.deployment import Deployment


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Callable[[], Any]]:
    """The loop that the proxy runs on."""
    return {"uvloop": uvloop.new_event_loop}


Deploy = Callable[..., Any]


@pytest.fixture
async def deploy() -> AsyncIterator[Deploy]:
    """Start deployments; each is checked for leaks in the end."""
    async with AsyncExitStack() as stack:

        async def start(topology: str = "E+PD", **settings: Any) -> Deployment:
            return await stack.enter_async_context(_running(topology, **settings))

        yield start


@asynccontextmanager
async def _running(topology: str, **settings: Any) -> AsyncIterator[Deployment]:
    deployment = Deployment(topology, **settings)
    await deployment.start()
    try:
        yield deployment
        await deployment.check_leaks()
    finally:
        await deployment.stop()
