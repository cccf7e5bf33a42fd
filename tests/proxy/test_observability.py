"""Metrics, spans and logs."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from epd_proxy import tracing
from epd_proxy.access_log import AccessLog
from epd_proxy.metrics import Metrics
from tests.proxy.conftest import Deploy
from tests.simulator.requests import chat, data_url, image, new_mark

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def value(text: str, line: str) -> float:
    found = [x for x in text.splitlines() if x.startswith(line + " ")]
    assert found, text
    return float(found[0].rsplit(" ", 1)[1])


async def test_bytes_and_items_are_counted(deploy: Deploy) -> None:
    proxy = await deploy()
    mark = new_mark()
    await proxy.post(chat(mark, image(data_url(mark, 50_000)), stream=True))
    answer = await proxy.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    text = answer.text
    assert value(text, 'epd_proxy_media_items_total{outcome="rewritten",reason=""}') == 1
    assert value(text, 'epd_proxy_upstream_request_bytes_total{role="encode"}') > 50_000
    assert value(text, 'epd_proxy_upstream_request_bytes_total{role="decode"}') < 2_000
    assert value(text, 'epd_proxy_requests_total{path="chat",status="200"}') == 1
    assert value(text, 'epd_proxy_first_byte_seconds_count{path="chat"}') == 1
    assert value(text, 'epd_proxy_stage_seconds_count{stage="encode"}') == 1
    assert value(text, 'epd_proxy_engines{role="decode",state="up"}') == 1


async def test_series_of_an_engine_go_with_it(deploy: Deploy) -> None:
    proxy = await deploy(decoders=2)
    gone, stays = proxy.engines["decode"]
    assert gone.url in (await proxy.get("/metrics")).text
    proxy.members.set([proxy.member(e) for e in [*proxy.engines["encode"], stays]])
    text = (await proxy.get("/metrics")).text
    assert gone.url not in text
    assert stays.url in text


def test_snapshots_add_up() -> None:
    one, two = Metrics(), Metrics()
    for metrics in (one, two):
        metrics.requests["chat", 200] += 2
        metrics.request_seconds.observe(("chat",), 0.3)
    two.requests["chat", 503] += 1
    text = one.text([two.snapshot()]).decode()
    assert value(text, 'epd_proxy_requests_total{path="chat",status="200"}') == 4
    assert value(text, 'epd_proxy_requests_total{path="chat",status="503"}') == 1
    assert value(text, 'epd_proxy_request_seconds_count{path="chat"}') == 2
    assert value(text, 'epd_proxy_request_seconds_bucket{le="0.25",path="chat"}') == 0
    assert value(text, 'epd_proxy_request_seconds_bucket{le="0.5",path="chat"}') == 2


async def test_spans(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_SEND_SECONDS", 0.05)
    sent: list[Any] = []

    async def collect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        sent.extend(json.loads(await reader.readexactly(length))["resourceSpans"][0]["scopeSpans"][0]["spans"])
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(collect, "127.0.0.1", 0)
    endpoint = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    proxy = await deploy("E+P+D", config={"tracing": {"endpoint": endpoint, "sampleRatio": 0}})
    proxy.core.spawn(proxy.service.tracer.run())
    mark = new_mark()
    await proxy.post(chat(mark, image(data_url(mark))), {"traceparent": PARENT})
    await proxy.post(chat(new_mark()))
    await proxy.post(chat(new_mark()), {"traceparent": PARENT[:-2] + "00"})
    await proxy.until(lambda: sent)
    server.close()
    root, *stages = sent
    assert (root["name"], root["parentSpanId"]) == ("POST /v1/chat/completions", "b7ad6b7169203331")
    assert [s["name"] for s in stages] == ["encode", "prefill", "decode"]
    assert {s["traceId"] for s in sent} == {"0af7651916cd43dd8448eb211c80319c"}
    assert {s["parentSpanId"] for s in stages} == {root["spanId"]}
    first = proxy.world.by("encode")[0].exchange.headers["traceparent"]
    assert first == f"00-{root['traceId']}-{root['spanId']}-01"


async def test_the_access_log_has_no_content(deploy: Deploy) -> None:
    proxy = await deploy()
    out, into = os.pipe()
    proxy.service.log = AccessLog(into)
    mark = new_mark()
    await proxy.post(chat(mark), {"Authorization": "Bearer secret"})
    proxy.service.log.flush()
    line = json.loads(os.read(out, 100_000))
    os.close(out)
    os.close(into)
    assert (line["status"], line["path"], line["stage"]) == (200, "/v1/chat/completions", "decode")
    assert mark not in json.dumps(line)
    assert "secret" not in json.dumps(line)
