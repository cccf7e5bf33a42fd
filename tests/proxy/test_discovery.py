"""Engines by EndpointSlices: what is there is used, what goes is not, and no gap leaves anything behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from epd_proxy import discovery
from epd_proxy.config import Discovery, Role
from epd_proxy.discovery import Watcher, closed_in, members_of, roles_of
from epd_proxy.endpoints import State
from epd_proxy.kube import ApiServer, KubeClient, KubeError
from tests.proxy.api_server import FakeApiServer
from tests.proxy.conftest import Deploy
from tests.proxy.deployment import Deployment
from tests.simulator.engine import Engine
from tests.simulator.faults import Mode
from tests.simulator.requests import chat, data_url, image, new_mark


def slice_of(
    role: str, *engines: Engine, revision: str = "r1", traffic: str | None = None, **conditions: bool
) -> dict[str, Any]:
    world = engines[0].world if engines else None
    labels = {
        "app.kubernetes.io/instance": "demo",
        "epd.dev/role": role,
        "epd.dev/revision": revision,
        "epd.dev/engine-version": f"{world.minor}.0" if world else "0.33.0",
    }
    if traffic is not None:
        labels["epd.dev/traffic"] = traffic
    conditions = {"ready": True, "serving": True, "terminating": False, **conditions}
    # Engines of a test differ by port where pods differ by address, hence one slice for each.
    return {
        "metadata": {"labels": labels},
        "ports": [{"name": "http", "port": engines[0].port if engines else 8000}],
        "endpoints": [{"addresses": ["127.0.0.1"], "conditions": conditions}] if engines else None,
    }


class Discovered:
    """A proxy whose engines a fake API server knows."""

    def __init__(self, proxy: Deployment, server: FakeApiServer) -> None:
        self.proxy = proxy
        self.server = server

    def show(self, engine: Engine, **more: Any) -> None:
        self.server.put(self.name(engine), slice_of(engine.role, engine, **more))

    def name(self, engine: Engine) -> str:
        return f"{engine.role}-{engine.number}"

    def used(self) -> set[tuple[str, int]]:
        return {(e.role.value, e.port) for e in self.proxy.core.fleet.endpoints() if e.state is State.UP}

    async def until_used(self, *engines: Engine) -> None:
        wanted = {(engine.role, engine.port) for engine in engines}
        await self.proxy.until(lambda: self.used() == wanted)


@pytest.fixture
async def discovered(deploy: Deploy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Discovered]:
    monkeypatch.setattr(discovery, "BACK_OFF", (0.01, 0.05))
    proxy = await deploy("E+PD", decoders=3)
    server = FakeApiServer(tmp_path)
    await server.start()
    proxy.members.set([])
    client = KubeClient(server.address)
    watcher = Watcher(client, Discovery(namespace="n", instance="demo"), proxy.members, proxy.core.fleet)
    task = asyncio.create_task(watcher.run())
    yield Discovered(proxy, server)
    task.cancel()
    await server.stop()


async def test_what_is_ready_is_used(discovered: Discovered) -> None:
    proxy = discovered.proxy
    encoder, decoder = proxy.engines["encode"][0], proxy.engines["decode"][0]
    discovered.show(encoder)
    discovered.show(decoder, ready=False)
    await discovered.until_used(encoder)
    assert not proxy.core.fleet.ready
    discovered.show(decoder)
    await discovered.until_used(encoder, decoder)
    mark = new_mark()
    assert (await proxy.post(chat(mark, image(data_url(mark))))).status == 200
    discovered.show(decoder, terminating=True)
    await discovered.until_used(encoder)
    assert (await proxy.post(chat(new_mark()))).status == 503
    assert set(discovered.server.tokens) == {"first-token"}


@pytest.mark.parametrize("gap", ["expired", "broken", "refused"])
async def test_after_a_gap_all_is_listed_again(discovered: Discovered, gap: str) -> None:
    proxy, server = discovered.proxy, discovered.server
    first, second, third = proxy.engines["decode"]
    discovered.show(first)
    discovered.show(second)
    await discovered.until_used(first, second)
    (server.account / "token").write_text("second-token")
    server.put_silently(discovered.name(first), None)
    server.put_silently(discovered.name(third), slice_of("decode", third))
    server.refusing = gap == "refused"
    if gap == "expired":
        server.expire_watches()
    else:
        server.break_watches()
    if gap == "refused":
        await asyncio.sleep(0.2)
        assert (await proxy.post(chat(new_mark()))).status == 200  # what was known last stays
        server.refusing = False
    await discovered.until_used(second, third)
    assert server.tokens[-1] == "second-token"


async def test_encoders_scaled_to_none(discovered: Discovered) -> None:
    proxy = discovered.proxy
    encoder, decoder = proxy.engines["encode"][0], proxy.engines["decode"][0]
    discovered.server.put(discovered.name(encoder), slice_of("encode"))
    discovered.show(decoder)
    await discovered.until_used(decoder)
    await proxy.until(lambda: proxy.core.fleet.ready)
    mark = new_mark()
    assert (await proxy.post(chat(mark))).status == 200
    assert (await proxy.post(chat(mark, image(data_url(mark))))).status == 503
    assert len(proxy.world.by("decode")) == 1
    discovered.show(encoder)
    await discovered.until_used(encoder, decoder)
    assert (await proxy.post(chat(mark, image(data_url(mark))))).status == 200


async def test_a_revision_that_lacks_a_role_does_not_serve(discovered: Discovered) -> None:
    proxy = discovered.proxy
    encoder, decoder = proxy.engines["encode"][0], proxy.engines["decode"][0]
    discovered.show(encoder, revision="old")
    discovered.show(decoder, revision="old")
    await discovered.until_used(encoder, decoder)
    other, later = proxy.engines["encode"][1], proxy.engines["decode"][1]
    discovered.server.put("encode-new", slice_of("encode", revision="new"))
    discovered.show(later, revision="new")
    await discovered.until_used(encoder, decoder, later)
    assert [r.name for r in proxy.core.fleet.serving] == ["old"]
    for _ in range(10):
        mark = new_mark()
        assert (await proxy.post(chat(mark, image(data_url(mark))))).status == 200
    assert {r.engine for r in proxy.world.by("decode")} == {decoder.number}
    discovered.server.put("encode-new", slice_of("encode", other, revision="new"))
    await discovered.until_used(encoder, decoder, later, other)
    assert {r.name for r in proxy.core.fleet.serving} == {"old", "new"}
    discovered.server.delete(discovered.name(encoder))
    discovered.server.delete(discovered.name(decoder))
    await discovered.until_used(later, other)
    assert "old" not in proxy.core.fleet.revisions


async def test_a_closed_revision_gets_no_new_requests_and_ends_what_it_began(discovered: Discovered) -> None:
    proxy = discovered.proxy
    old, new = (
        (proxy.engines["encode"][0], proxy.engines["decode"][0]),
        (
            proxy.engines["encode"][1],
            proxy.engines["decode"][1],
        ),
    )
    for engine in old:
        discovered.show(engine, revision="old")
    discovered.show(new[0], revision="new")
    discovered.show(new[1], revision="new", traffic="false")
    await discovered.until_used(*old, *new)
    assert [r.name for r in proxy.core.fleet.serving] == ["old"]
    for _ in range(10):
        mark = new_mark()
        assert (await proxy.post(chat(mark, image(data_url(mark))))).status == 200
    assert {r.engine for r in proxy.world.by("decode")} == {old[1].number}
    proxy.fault("encode", Mode.SLOW, 3000, count=1)  # the request is at the encoder, and has yet to find a decoder
    mark = new_mark()
    begun = asyncio.create_task(proxy.post(chat(mark, image(data_url(mark)))))
    await proxy.until(lambda: len(proxy.world.by("encode")) == 11)
    discovered.show(new[1], revision="new")
    discovered.show(old[1], revision="old", traffic="false")
    await proxy.until(lambda: [r.name for r in proxy.core.fleet.serving] == ["new"])
    assert not begun.done()
    assert (await begun).status == 200
    assert [r.engine for r in proxy.world.by("decode")][-1] == old[1].number
    for _ in range(10):
        mark = new_mark()
        assert (await proxy.post(chat(mark, image(data_url(mark))))).status == 200
    assert {r.engine for r in proxy.world.by("decode")[11:]} == {new[1].number}
    discovered.show(new[1], revision="new", traffic="false")
    await proxy.until(lambda: not proxy.core.fleet.ready)
    assert (await proxy.post(chat(new_mark()))).status == 503


async def test_changes_under_load(discovered: Discovered) -> None:
    proxy = discovered.proxy
    encoder = proxy.engines["encode"][0]
    discovered.show(encoder)
    decoders = proxy.engines["decode"]
    for decoder in decoders:
        discovered.show(decoder)
    await discovered.until_used(encoder, *decoders)
    statuses: list[int] = []

    async def client() -> None:
        for _ in range(40):
            mark = new_mark()
            answer = await proxy.post(chat(mark, image(data_url(mark))))
            statuses.append(answer.status)

    clients = [asyncio.create_task(client()) for _ in range(4)]
    for number in range(12):
        decoder = decoders[number % 3]
        discovered.server.delete(discovered.name(decoder))
        await asyncio.sleep(0.02)
        discovered.show(decoder)
        await discovered.until_used(encoder, *decoders)
    await asyncio.gather(*clients)
    assert set(statuses) == {200}
    assert len(statuses) == 160


def test_another_version_than_the_service_says_is_refused() -> None:
    slices = [slice_of("decode", revision="a"), slice_of("encode", revision="a"), slice_of("decode", revision="b")]
    assert roles_of(slices) == {"a": {Role.DECODE, Role.ENCODE}, "b": {Role.DECODE}}
    assert members_of(slices) == []


def test_one_slice_of_several_closes_a_revision() -> None:
    slices = [slice_of("decode"), slice_of("decode", traffic="false"), slice_of("encode", revision="other")]
    assert closed_in(slices) == {"r1"}
    assert closed_in([slice_of("decode", traffic="true")]) == set()


@pytest.mark.parametrize(
    ("conditions", "count"),
    [({}, 1), ({"ready": None}, 1), ({"ready": False}, 0), ({"ready": True, "terminating": True}, 0)],
)
def test_conditions(conditions: dict[str, Any], count: int) -> None:
    found = slice_of("decode")
    found["endpoints"] = [{"addresses": ["10.0.0.1"], "conditions": conditions}]
    assert len(members_of([found])) == count


def test_slices_of_others_are_ignored() -> None:
    found = slice_of("decode")
    found["endpoints"] = [{"addresses": ["10.0.0.1"]}]
    found["metadata"]["labels"]["epd.dev/role"] = "something"
    assert members_of([found]) == []
    assert members_of([{"metadata": {}}]) == []


def test_outside_of_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(KubeError, match="in a pod only"):
        ApiServer.of_pod()
