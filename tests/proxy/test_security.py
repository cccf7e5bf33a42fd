"""What a client must not be able to do."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.conftest import Deploy
from tests.simulator.client import CHAT, Client
from tests.simulator.requests import chat, data_url, image, new_mark

PRIVATE = (
    "http://127.0.0.1/x.png",
    "http://localhost/x.png",
    "http://[::1]/x.png",
    "http://127.1/x.png",
    "http://2130706433/x.png",
    "http://0x7f000001/x.png",
    "http://169.254.169.254/x.png",
    "http://10.0.0.1/x.png",
    "http://[::ffff:10.0.0.1]/x.png",
)
OTHER_SCHEMES = ("file:///etc/hostname", "FILE:///etc/hostname", "ftp://example.com/x", "//example.com/x", "/x.png", "")


def with_part(part: Any) -> dict[str, Any]:
    body = chat(new_mark())
    body["messages"][0]["content"] = [{"type": "text", "text": new_mark()}, part]
    return body


# ---------------------------------------------------------------- what names caches and peers


@pytest.mark.parametrize("topology", ["PD", "E+PD", "E+P+D"])
@pytest.mark.parametrize("name", ["ec_transfer_params", "kv_transfer_params"])
@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/v1/responses", "/tokenize"])
async def test_transfer_params_are_refused(deploy: Deploy, topology: str, name: str, path: str) -> None:
    proxy = await deploy(topology)
    answer = await proxy.post({**chat(new_mark()), name: {"remote_host": "10.99.0.9"}}, path=path)
    assert (answer.status, name in answer.error["message"]) == (400, True)
    assert not proxy.world.received


@pytest.mark.parametrize(
    "text",
    [
        '{"messages":[{"role":"user","content":"x"}],"kv_tr\\u0061nsfer_params":{"remote_host":"10.99.0.9"}}',
        '{"messages":[{"role":"user","content":[{"im\\u0061ge_url":"http://10.0.0.1/x"}]}]}',
        '{"messages":[{"role":"user","content":[{"type":"im\\u0061ge_embeds","uuid":"x"}]}]}',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32"])
async def test_names_hidden_by_escapes_or_encodings(deploy: Deploy, text: str, encoding: str) -> None:
    proxy = await deploy()
    for hidden in (text, text.encode().decode("unicode_escape")):
        answer = await proxy.post(hidden.encode(encoding))
        assert answer.status == 400
    assert not proxy.world.received


async def test_a_clients_uuid_is_replaced(deploy: Deploy) -> None:
    proxy = await deploy()
    mark = new_mark()
    assert (await proxy.post(chat(mark, image(data_url(mark), uuid="of-the-client")))).status == 200
    assert not any(b"of-the-client" in r.exchange.body for r in proxy.world.received)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_embeds", "image_embeds": {"image_grid_thw": [1, 2, 2]}, "uuid": "u"},
        {"type": "image_embeds", "uuid": "u"},
        {"type": "text", "text": "x", "uuid": "u", "image_embeds": "AAAA"},
        {"type": "prompt_embeds", "data": "AAAA"},
        {"type": "image_url", "uuid": "u"},
        {"type": "image_url", "image_url": None, "uuid": "u"},
        {"image_pil": "AAAA"},
        {"type": "image_url", "image_url": {"url": "data:,"}, "video_url": {"url": "data:,"}},
        {"type": "text", "text": "x", "image_url": {"url": "data:,"}},
        {"type": "video_url", "image_url": {"url": "data:,"}},
        {"type": "image_url", "image_url": {"url": 7}},
        {"type": "image_url", "image_url": {"detail": "low"}},
        {"type": "input_audio", "input_audio": "AAAA"},
    ],
)
async def test_parts_that_are_refused(deploy: Deploy, part: dict[str, Any]) -> None:
    proxy = await deploy()
    answer = await proxy.post(with_part(part))
    assert answer.status == 400
    assert answer.error
    assert not proxy.world.received


async def test_equal_media_of_two_tenants_have_two_names(deploy: Deploy, tmp_path: Path) -> None:
    (tmp_path / "alice").write_text("key-a")
    (tmp_path / "bob").write_text("key-b\n")
    proxy = await deploy(api_keys=tmp_path)
    url = data_url("x" * 12)
    for key in ("key-a", "key-b", "key-a"):
        answer = await proxy.post(chat(new_mark(), image(url)), {"Authorization": f"Bearer {key}"})
        assert answer.status == 200
    first, second, third = [r.items[0]["uuid"] for r in proxy.world.by("encode")]
    assert first == third != second


# ---------------------------------------------------------------- media URLs


@pytest.mark.parametrize("url", [*PRIVATE, *OTHER_SCHEMES])
@pytest.mark.parametrize("domains", [[], ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "10.0.0.1"]])
async def test_urls_that_are_refused(deploy: Deploy, url: str, domains: list[str]) -> None:
    proxy = await deploy(config={"media": {"allowedDomains": domains}})
    shapes: list[Any] = [
        image(url),
        {"image_url": url},
        {"image_url": {"url": url}},
        {"type": "text", "text": "x", "uuid": "u", "image_url": url},
        {"type": "input_image", "image_url": url},
        {"type": "video_url", "video_url": {"url": url}},
        {"audio_url": {"url": url}},
    ]
    for shape in shapes:
        assert (await proxy.post(with_part(shape))).status == 400
    assert not proxy.world.received


@pytest.mark.parametrize(
    "url",
    [
        "https://good.example@10.0.0.1/x",
        "https://good.example:80@evil.example/x",
        "https://good.example\\@evil.example/x",
        "https://evil.example/?good.example",
        "https://good.example.evil.example/x",
        "https://good.example\t/x",
        " https://good.example/x",
        "https://good.example/\u0000",
        "https:/good.example/x",
        "https:good.example",
        "https://g\u043e\u043ed.example/x",
        "https://evil.example/;base64," + "A" * 5000,
    ],
)
async def test_urls_that_pretend(deploy: Deploy, url: str) -> None:
    proxy = await deploy(config={"media": {"allowedDomains": ["good.example"], "allowPrivateAddresses": True}})
    assert (await proxy.post(with_part(image(url)))).status == 400
    assert not proxy.world.received


async def test_an_allowed_url_goes_through_under_a_name_of_its_own(deploy: Deploy) -> None:
    media = {"allowedDomains": ["good.example"], "allowPrivateAddresses": True}
    proxy = await deploy(config={"media": media})
    url = "https://GOOD.example:8443/a%20b.png?c=d&e#f"
    for _ in range(2):
        assert (await proxy.post(with_part(image(url)))).status == 200
    items = [r.items[0] for r in proxy.world.by("encode")]
    assert [i["image_url"]["url"] for i in items] == [url, url]
    assert items[0]["uuid"] != items[1]["uuid"]


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/messages", "/tokenize"])
@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_image", "image_url": "http://10.0.0.1/x"},
        {"type": "image", "source": {"type": "url", "url": "http://10.0.0.1/x"}},
        {"type": "input_file", "file_url": "file:///etc/hostname"},
        {"type": "image_url", "image_url": {"url": "http://10.0.0.1/x"}},
        {"type": "image_embeds", "image_embeds": "AAAA"},
    ],
)
async def test_media_in_other_apis_are_held_to_the_same(deploy: Deploy, path: str, part: dict[str, Any]) -> None:
    proxy = await deploy()
    body = {"model": "sim", "input": [{"role": "user", "content": [part]}], "messages": [{"content": [part]}]}
    assert (await proxy.post(body, path=path)).status == 400
    assert not proxy.world.received


async def test_media_in_other_apis_go_to_who_can_take_them(deploy: Deploy) -> None:
    proxy = await deploy("E+P+D")
    mark = new_mark()
    part = {"type": "input_image", "image_url": data_url(mark)}
    with_media = {"model": "sim", "input": [{"role": "user", "content": [part]}]}
    assert (await proxy.post(with_media, path="/v1/responses")).status == 200
    assert (await proxy.post({"model": "sim", "input": mark}, path="/v1/responses")).status == 200
    assert [r.role for r in proxy.world.received] == ["prefill", "decode"]


# ---------------------------------------------------------------- keys


async def test_keys(deploy: Deploy, tmp_path: Path) -> None:
    (tmp_path / "one").write_text("right")
    (tmp_path / ".hidden").write_text("hidden")
    proxy = await deploy(api_keys=tmp_path, engine_key="engine-secret")
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "right"},
        {"Authorization": "Bearer hidden"},
    ):
        assert (await proxy.post(chat(new_mark()), headers)).status == 401
        assert (await proxy.get("/v1/models", headers)).status == 401
    for headers in ({"Authorization": "Bearer right"}, {"authorization": "bearer right"}, {"x-api-key": "right"}):
        assert (await proxy.post(chat(new_mark()), headers)).status == 200
    assert (await proxy.get("/v1/models", {"Authorization": "Bearer right"})).status == 200
    assert (await proxy.get("/health")).status == 200
    assert (await proxy.get("/metrics")).status == 200
    for received in proxy.world.received:
        assert received.exchange.headers["authorization"] == "Bearer engine-secret"
        assert b"right" not in received.exchange.body


# ---------------------------------------------------------------- HTTP

GOOD = json.dumps(chat("m00000000000")).encode()
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
SMUGGLED = b"GET /v1/models HTTP/1.1\r\nHost: x\r\nX-Smuggled: yes\r\n\r\n"


@pytest.mark.parametrize(
    "raw",
    [
        HEAD + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % len(GOOD) + GOOD,
        HEAD + b"Content-Length: %d\r\nContent-Length: %d\r\n\r\n" % (len(GOOD), len(GOOD)) + GOOD,
        HEAD + b"Content-Length: %d\r\nContent-Length: 0\r\n\r\n" % len(GOOD) + GOOD,
        HEAD + b"Content-Length: +%d\r\n\r\n" % len(GOOD) + GOOD,
        HEAD + b"Content-Length: -1\r\n\r\n" + GOOD,
        HEAD + b"Content-Length: 0x10\r\n\r\n" + GOOD,
        HEAD + b"Content-Length : %d\r\n\r\n" % len(GOOD) + GOOD,
        HEAD + b"Content-Length: 3, 3\r\n\r\n" + GOOD,
        HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n",
        HEAD.replace(b"\r\n", b"\n") + b"Content-Length: 0\n\n",
        HEAD + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X: a\x00b\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"X: a\rb\r\nContent-Length: 0\r\n\r\n",
        HEAD + b"Host: y\r\nContent-Length: 0\r\n\r\n",
        HEAD.replace(b"Host: x\r\n", b"") + b"Content-Length: 0\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST  /v1/chat/completions HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /v1/chat/completions\r\nHost: x\r\n\r\n",
        b"GET /v1/models HTTP/9.9\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
async def test_what_could_be_read_in_two_ways_is_refused(deploy: Deploy, raw: bytes) -> None:
    proxy = await deploy()
    client = await Client.connect(proxy.port)
    client.writer.write(raw + SMUGGLED)
    answer = await client.response()
    assert answer.status in (400, 505)
    while not client.ended:
        await client.some()
    assert b"HTTP/1.1 200" not in client.received
    assert not proxy.world.received
    await client.close()


async def test_pipelined_requests_are_answered_in_order(deploy: Deploy) -> None:
    proxy = await deploy()
    marks = [new_mark() for _ in range(3)]
    client = await Client.connect(proxy.port)
    for mark in marks:
        client.send("POST", CHAT, json.dumps(chat(mark, image(data_url(mark)))).encode())
    for mark in marks:
        assert mark in (await client.response()).text
    await client.close()


async def test_a_body_that_looks_like_a_request_is_a_body(deploy: Deploy) -> None:
    proxy = await deploy()
    mark = new_mark()
    body = json.dumps(chat(mark, tail=SMUGGLED.decode())).encode()
    client = await Client.connect(proxy.port)
    for cut in (1, len(body) - 40, len(body) - 1):
        client.send("POST", CHAT, b"", {"Content-Length": str(len(body))})
        client.writer.write(body[:cut])
        await asyncio.sleep(0.02)
        client.writer.write(body[cut:])
        assert (await client.response()).status == 200
    await client.close()
    assert [r.exchange.path for r in proxy.world.received] == [CHAT] * 3


@pytest.mark.parametrize("value", ["a\r\nX-Injected: 1", "a b", "x" * 200, "é"])
async def test_a_request_id_can_inject_nothing(deploy: Deploy, value: str) -> None:
    proxy = await deploy()
    client = await Client.connect(proxy.port)
    client.writer.write(HEAD + b"Content-Length: %d\r\nX-Request-Id: %b\r\n\r\n" % (len(GOOD), value.encode()) + GOOD)
    answer = await client.response()
    await client.close()
    assert "x-injected" not in answer.headers
    for received in proxy.world.received:
        assert "x-injected" not in received.exchange.headers
        assert "x-smuggled" not in received.exchange.headers


# ---------------------------------------------------------------- limits


async def test_a_body_that_is_too_large(deploy: Deploy) -> None:
    proxy = await deploy(config={"limits": {"bodySize": 10_000}})
    assert (await proxy.post(b'{"a": ', {"Content-Length": str(10**12)})).status == 413
    chunks = b"".join(b"%x\r\n%b\r\n" % (1000, b"x" * 1000) for _ in range(20))
    assert (await proxy.post(chunks, {"Transfer-Encoding": "chunked"})).status == 413
    assert proxy.core.metrics.refused[("body-size",)] == 2


async def test_bodies_in_flight_are_bounded(deploy: Deploy) -> None:
    proxy = await deploy(config={"limits": {"inFlightSize": 100_000}})
    waiting = await Client.connect(proxy.port)
    waiting.send("POST", CHAT, b"", {"Content-Length": "90000"})
    await proxy.until(lambda: proxy.core.budget.used == 90_000)
    answer = await proxy.post(chat(new_mark(), image(data_url(new_mark(), 20_000))))
    assert (answer.status, answer.headers["retry-after"]) == (503, "2")
    await waiting.close()
    await proxy.until(lambda: proxy.core.budget.used == 0)
    mark = new_mark()
    assert (await proxy.post(chat(mark, image(data_url(mark, 20_000))))).status == 200


async def test_requests_in_flight_are_bounded(deploy: Deploy) -> None:
    proxy = await deploy(config={"limits": {"inFlightRequests": 1}})
    waiting = await Client.connect(proxy.port)
    waiting.send("POST", CHAT, b"", {"Content-Length": "9"})
    await proxy.until(lambda: proxy.service.admission.in_flight)
    assert (await proxy.post(chat(new_mark()))).status == 503
    assert (await proxy.get("/health")).status == 200
    await waiting.close()


@pytest.mark.parametrize(
    ("settings", "parts", "status"),
    [({"maxItems": 2}, 3, 400), ({"maxSize": 5000}, 1, 413), ({"maxItems": 3}, 3, 200)],
)
async def test_media_limits(deploy: Deploy, settings: dict[str, int], parts: int, status: int) -> None:
    proxy = await deploy(config={"media": settings})
    mark = new_mark()
    images = [image(data_url(mark, seed=n)) for n in range(parts)]
    assert (await proxy.post(chat(mark, *images))).status == status


async def test_text_beyond_the_limit_is_refused_where_it_would_be_parsed(deploy: Deploy) -> None:
    proxy = await deploy(config={"limits": {"textSize": 100_000}})
    mark = new_mark()
    long = {"type": "text", "text": "x" * 200_000}
    assert (await proxy.post(chat(mark, long, image(data_url(mark))))).status == 413
    assert (await proxy.post(chat(mark, image(data_url(mark, 500_000))))).status == 200


async def test_a_body_that_does_not_come_is_not_waited_for(deploy: Deploy) -> None:
    timeouts = {"clientBodySeconds": 0.2, "clientHeadSeconds": 0.2, "clientKeepAliveSeconds": 0.2}
    proxy = await deploy(config={"timeouts": timeouts})
    for start in (HEAD + b"Content-Length: 100000\r\n\r\n{", HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{"):
        client = await Client.connect(proxy.port)
        client.writer.write(start)
        assert (await client.response()).status == 408
        await client.close()
    for start in (HEAD[:20], b""):
        client = await Client.connect(proxy.port)
        client.writer.write(start)
        assert not await client.some()
        await client.close()


async def test_nested_beyond_reason(deploy: Deploy) -> None:
    proxy = await deploy()
    deep = b'{"messages":[{"content":[{"image_url":' + b"[" * 200_000
    answer = await proxy.post(deep)
    assert answer.status == 400
    assert answer.error


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/no-such-thing", 404),
        ("POST", "/invocations", 404),
        ("POST", "/v1/chat/completions/../../invocations", 404),
        ("POST", "//v1/chat/completions", 404),
        ("GET", "/v1/chat/completions", 405),
        ("DELETE", "/v1/models", 405),
        ("CONNECT", "/v1/models", 400),
        ("GET", "/server_info", 404),
        ("GET", "/v1/models?x=y", 200),
        ("HEAD", "/health", 200),
    ],
)
async def test_paths(deploy: Deploy, method: str, path: str, status: int) -> None:
    proxy = await deploy()
    client = await Client.connect(proxy.port)
    client.send(method, path)
    answer = await client.response() if method != "HEAD" else None
    if answer:
        assert answer.status in (status, 405 if method == "CONNECT" else status)
    await client.close()
