"""Connections to engines: as many as there are requests, kept and used again, and given up with their requests."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.proxy.conftest import Deploy
from tests.simulator.client import CHAT, Client
from tests.simulator.faults import Mode
from tests.simulator.requests import chat, data_url, image, new_mark

MANY = 150
"""More than any client library allows a pool by default."""


@pytest.mark.parametrize("topology", ["E+PD", "E+P+D"])
async def test_nothing_but_admission_bounds_the_connections(deploy: Deploy, topology: str) -> None:
    """P26."""
    proxy = await deploy(topology)
    (decoder,) = proxy.engines["decode"]
    proxy.fault("decode", Mode.HANG)
    clients = [await Client.connect(proxy.port) for _ in range(MANY)]
    for client in clients:
        client.send("POST", CHAT, json.dumps(chat(new_mark())).encode())
    await proxy.until(lambda: len(proxy.world.by("decode")) == MANY, 30)
    assert len(decoder.connections) >= MANY
    for client in clients:
        await client.close()
    await proxy.until(lambda: set(proxy.states("decode")) == {"aborted"})


@pytest.mark.parametrize("topology", ["E+PD", "E+P+D"])
async def test_connections_are_used_again(deploy: Deploy, topology: str) -> None:
    """P44: one pool for a process, whatever way a request goes."""
    proxy = await deploy(topology)
    for _ in range(3):  # the first opens what is needed
        answers = await asyncio.gather(*(proxy.post(chat(new_mark())) for _ in range(20)))
        assert {answer.status for answer in answers} == {200}
    opened = {id(r.exchange.connection) for r in proxy.world.by("decode")}
    for _ in range(40):
        mark = new_mark()
        assert (await proxy.post(chat(mark, image(data_url(mark))))).status == 200
        assert (await proxy.post(chat(mark, stream=True))).status == 200
    used = {id(r.exchange.connection) for r in proxy.world.by("decode")}
    assert len(used) <= len(opened) + 1
    assert max(connection.served for connection in proxy.engines["decode"][0].connections) > 40


async def test_decode_is_asked_and_then_left_so_that_prefill_is_told(deploy: Deploy) -> None:
    """P9: blocks that prefill holds for a decoder are given back by the decoder, if it knows of them."""
    proxy = await deploy("E+P+D")
    proxy.fault("decode", Mode.HANG)
    client = await Client.connect(proxy.port)
    mark = new_mark()
    client.send("POST", CHAT, json.dumps(chat(mark)).encode())
    await proxy.until(lambda: proxy.world.by("decode"))
    await client.close()
    await proxy.until(lambda: proxy.states("decode") == ["aborted"])
    (decode,) = proxy.world.by("decode")
    assert decode.json["kv_transfer_params"]["remote_request_id"] in proxy.world.prefills
    assert "epd_proxy_orphaned_prefills_total 1.0" in (await proxy.get("/metrics")).text


async def test_a_prefill_that_is_left_has_nothing_to_give_back(deploy: Deploy) -> None:
    """P9: it is aborted itself, and no decoder hears of it."""
    proxy = await deploy("E+P+D")
    proxy.fault("prefill", Mode.HANG)
    client = await Client.connect(proxy.port)
    client.send("POST", CHAT, json.dumps(chat(new_mark())).encode())
    await proxy.until(lambda: proxy.world.by("prefill"))
    await client.close()
    await proxy.until(lambda: proxy.states("prefill") == ["aborted"])
    assert not proxy.world.by("decode")
    assert "epd_proxy_orphaned_prefills_total 1.0" not in (await proxy.get("/metrics")).text


async def test_a_large_body_on_its_way_holds_nobody_up(deploy: Deploy) -> None:
    """P40: others are answered between its pieces."""
    proxy = await deploy()
    large = await Client.connect(proxy.port)
    marked = new_mark()
    body = json.dumps(chat(marked, image(data_url(marked, 30_000_000)))).encode()
    piece = len(body) // 20
    large.send("POST", CHAT, body[:piece], {"Content-Length": str(len(body))})
    for start in range(piece, len(body), piece):
        await large.writer.drain()
        mark = new_mark()
        assert mark in (await proxy.post(chat(mark))).text
        large.writer.write(body[start : start + piece])
    assert (await large.response()).status == 200
    await large.close()
