"""What clients see when engines fail, and what engines see when clients leave."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.proxy.conftest import Deploy
from tests.proxy.deployment import Deployment
from tests.simulator.client import CHAT, Client
from tests.simulator.faults import Mode
from tests.simulator.requests import chat, data_url, image, new_mark


def with_image(mark: str, **more: Any) -> dict[str, Any]:
    return chat(mark, image(data_url(mark)), **more)


async def opened(proxy: Deployment, body: dict[str, Any], headers: dict[str, str] | None = None) -> Client:
    client = await Client.connect(proxy.port)
    client.send("POST", CHAT, json.dumps(body).encode(), headers)
    return client


# ---------------------------------------------------------------- encoders


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [400, 404, 422, 429])
async def test_an_encoders_refusal_is_the_answer(deploy: Deploy, status: int, stream: bool) -> None:
    proxy = await deploy()
    proxy.fault("encode", Mode.STATUS, status)
    answer = await proxy.post(with_image(new_mark(), stream=stream))
    assert (answer.status, answer.error["message"]) == (status, "simulated failure")
    assert len(proxy.world.by("encode")) == 1
    assert not proxy.world.by("decode")


@pytest.mark.parametrize(("mode", "argument"), [(Mode.STATUS, 500), (Mode.STATUS, 503), (Mode.CLOSE, 0)])
async def test_a_failing_encoder_is_replaced_once(deploy: Deploy, mode: Mode, argument: int) -> None:
    proxy = await deploy()
    proxy.fault("encode", mode, argument, count=1)
    mark = new_mark()
    answer = await proxy.post(with_image(mark))
    assert answer.status == 200
    assert len({r.engine for r in proxy.world.by("encode")}) == 2


@pytest.mark.parametrize(
    ("mode", "argument", "status"),
    [(Mode.STATUS, 500, 500), (Mode.CLOSE, 0, 502), (Mode.GARBAGE, 0, 502), (Mode.NOT_JSON, 0, 502)],
)
async def test_when_all_encoders_fail_the_error_is_the_answer(
    deploy: Deploy, mode: Mode, argument: int, status: int
) -> None:
    proxy = await deploy()
    proxy.fault("encode", mode, argument)
    answer = await proxy.post(with_image(new_mark()))
    assert answer.status == status
    assert answer.error
    assert len(proxy.world.by("encode")) == 2
    assert not proxy.world.by("decode")


async def test_one_refused_image_of_two_ends_the_other(deploy: Deploy) -> None:
    proxy = await deploy(minor="0.30")
    mark, bad = new_mark(), new_mark()
    proxy.fault("encode", Mode.STATUS, 400, match=bad.encode())
    proxy.fault("encode", Mode.HANG)
    answer = await proxy.post(chat(mark, image(data_url(mark)), image(data_url(bad))))
    assert answer.status == 400
    await proxy.until(lambda: sorted(proxy.states("encode")) == ["aborted", "answered"])
    assert not proxy.world.by("decode")


@pytest.mark.parametrize("mode", [Mode.NO_METADATA, Mode.NO_HANDLES])
async def test_without_metadata_the_media_travel_under_the_same_uuid(deploy: Deploy, mode: Mode) -> None:
    proxy = await deploy()
    proxy.fault("encode", mode)
    mark = new_mark()
    assert (await proxy.post(with_image(mark))).status == 200
    (encoded,) = proxy.world.by("encode")[0].items
    assert proxy.world.by("decode")[0].items == [image(data_url(mark), uuid=encoded["uuid"])]


async def test_an_encoder_that_does_not_answer_in_time(deploy: Deploy) -> None:
    proxy = await deploy(config={"timeouts": {"encodeSeconds": 0.2}, "retries": {"attempts": 1}})
    proxy.fault("encode", Mode.HANG)
    answer = await proxy.post(with_image(new_mark()))
    assert answer.status == 504
    await proxy.until(lambda: proxy.states("encode") == ["aborted"])


async def test_requests_wait_for_a_busy_encoder_and_are_refused_beyond_its_queue(deploy: Deploy) -> None:
    limits = {"encoderRequests": 1, "encoderQueue": 1}
    proxy = await deploy(encoders=1, config={"limits": limits, "timeouts": {"queueSeconds": 0.3}})
    proxy.fault("encode", Mode.HANG)
    first = await opened(proxy, with_image(new_mark()))
    await proxy.until(lambda: proxy.world.by("encode"))
    second = asyncio.create_task(proxy.post(with_image(new_mark())))
    await proxy.until(lambda: proxy.core.waiting() == 1)
    third = await proxy.post(with_image(new_mark()))
    assert (third.status, third.headers["retry-after"]) == (503, "2")
    assert (await second).status == 503
    await first.close()


async def test_equal_images_in_flight_are_encoded_once(deploy: Deploy) -> None:
    proxy = await deploy(encoders=1)
    proxy.fault("encode", Mode.SLOW, 200)
    url = data_url("x" * 12)
    bodies = [chat(new_mark(), image(url)) for _ in range(3)]
    answers = await asyncio.gather(*map(proxy.post, bodies))
    assert [a.status for a in answers] == [200] * 3
    assert len(proxy.world.by("encode")) == 1
    assert proxy.core.metrics.coalesced[()] == 2


async def test_who_waits_for_an_encoding_goes_on_when_its_client_leaves(deploy: Deploy) -> None:
    proxy = await deploy(encoders=1)
    proxy.fault("encode", Mode.HANG, count=1)
    url = data_url("x" * 12)
    first = await opened(proxy, chat(new_mark(), image(url)))
    await proxy.until(lambda: proxy.world.by("encode"))
    second = asyncio.create_task(proxy.post(chat(new_mark(), image(url))))
    await asyncio.sleep(0.05)
    await first.close()
    assert (await second).status == 200
    assert proxy.states("encode") == ["aborted", "answered"]


# ---------------------------------------------------------------- consumers


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [400, 404, 500, 503])
async def test_decodes_refusal_is_the_answer(deploy: Deploy, status: int, stream: bool) -> None:
    proxy = await deploy()
    proxy.fault("decode", Mode.STATUS, status)
    answer = await proxy.post(chat(new_mark(), stream=stream))
    assert (answer.status, answer.error["message"]) == (status, "simulated failure")
    assert len(proxy.world.by("decode")) == 1


@pytest.mark.parametrize(("mode", "argument"), [(Mode.CLOSE, 0), (Mode.STATUS, 503)])
async def test_another_decoder_is_tried(deploy: Deploy, mode: Mode, argument: int) -> None:
    proxy = await deploy(decoders=2)
    proxy.fault("decode", mode, argument, count=1)
    mark = new_mark()
    answer = await proxy.post(chat(mark))
    assert (answer.status, mark in answer.text) == (200, True)
    assert len({r.engine for r in proxy.world.by("decode")}) == 2


@pytest.mark.parametrize(("mode", "argument"), [(Mode.CLOSE, 0), (Mode.STATUS, 500)])
async def test_a_consumer_that_dies_of_metadata_is_retried_raw(deploy: Deploy, mode: Mode, argument: int) -> None:
    proxy = await deploy(decoders=2)
    proxy.fault("decode", mode, argument, count=1)
    mark = new_mark()
    assert (await proxy.post(with_image(mark))).status == 200
    types = [[i["type"] for i in r.items] for r in proxy.world.by("decode")]
    assert types == [["image_embeds"], ["image_url"]]
    assert len(proxy.world.by("encode")) == 1


async def test_blocks_that_do_not_come_are_prefilled_again(deploy: Deploy) -> None:
    proxy = await deploy("E+P+D")
    proxy.fault("decode", Mode.STATUS, 500, count=1)
    mark = new_mark()
    assert (await proxy.post(with_image(mark))).status == 200
    assert len(proxy.world.by("prefill")) == 2
    ids = [r.json["kv_transfer_params"]["remote_request_id"] for r in proxy.world.by("decode")]
    assert len(set(ids)) == 2


@pytest.mark.parametrize("mode", [Mode.CLOSE, Mode.GARBAGE])
async def test_no_answer_of_the_only_decoder(deploy: Deploy, mode: Mode) -> None:
    proxy = await deploy()
    proxy.fault("decode", mode)
    answer = await proxy.post(chat(new_mark()))
    assert answer.status == 502
    assert answer.error["type"] == "BadGatewayError"


async def test_a_json_answer_that_breaks_is_an_error(deploy: Deploy) -> None:
    proxy = await deploy()
    proxy.fault("decode", Mode.DIE)
    answer = await proxy.post(chat(new_mark()))
    assert answer.status == 502
    assert len(proxy.world.by("decode")) == 1


@pytest.mark.parametrize("mode", [Mode.DIE, Mode.TEAR])
@pytest.mark.parametrize("topology", ["E+PD", "E+P+D"])
async def test_a_stream_that_breaks_ends_with_an_error_event(deploy: Deploy, topology: str, mode: Mode) -> None:
    proxy = await deploy(topology, decoders=2)
    proxy.fault("decode", mode, 3)
    answer = await proxy.post(with_image(new_mark(), stream=True, tokens=8))
    assert (answer.status, answer.complete) == (200, True)
    *whole, error, done = answer.events
    assert len(whole) == 3
    assert all("delta" in json.loads(event)["choices"][0] for event in whole)
    assert json.loads(error)["error"]["code"] == 502
    assert done == "[DONE]"
    assert len(proxy.world.by("decode")) == 1


async def test_a_stream_of_messages_that_breaks_ends_with_anthropics_error(deploy: Deploy) -> None:
    proxy = await deploy()
    proxy.fault("decode", Mode.DIE, 3)
    body = {"model": "sim", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 8, "stream": True}
    answer = await proxy.post(body, path="/v1/messages")
    assert (answer.status, answer.complete) == (200, True)
    name, data = answer.text.rstrip("\n").rpartition("\n\n")[2].splitlines()
    assert name == "event: error"
    said = json.loads(data.removeprefix("data: "))
    assert (said["type"], said["error"]["type"]) == ("error", "api_error")


async def test_decode_that_does_not_begin_in_time(deploy: Deploy) -> None:
    proxy = await deploy(config={"timeouts": {"firstByteSeconds": 0.2}})
    proxy.fault("decode", Mode.HANG)
    answer = await proxy.post(chat(new_mark()))
    assert answer.status == 504
    await proxy.until(lambda: proxy.states("decode") == ["aborted"])


async def test_a_stream_that_stalls_is_ended(deploy: Deploy) -> None:
    proxy = await deploy(config={"timeouts": {"idleSeconds": 0.2}})
    proxy.fault("decode", Mode.STALL, 2)
    answer = await proxy.post(chat(new_mark(), stream=True))
    assert (answer.status, answer.complete, len(answer.events)) == (200, True, 4)
    assert "did not answer in time" in answer.events[2]
    await proxy.until(lambda: proxy.states("decode") == ["aborted"])


@pytest.mark.parametrize("role", ["encode", "prefill", "decode"])
async def test_a_closed_pooled_connection_is_replaced_unseen(deploy: Deploy, role: str) -> None:
    proxy = await deploy("E+P+D", encoders=1)
    assert (await proxy.post(with_image(new_mark()))).status == 200
    proxy.fault(role, Mode.STALE, count=1)
    assert (await proxy.post(with_image(new_mark()))).status == 200
    assert proxy.states(role) == ["answered", "closed", "answered"]
    assert not sum(proxy.core.metrics.retries.values())


async def test_prefill_that_fails(deploy: Deploy) -> None:
    proxy = await deploy("E+P+D")
    proxy.fault("prefill", Mode.STATUS, 500)
    answer = await proxy.post(with_image(new_mark(), stream=True))
    assert answer.status == 500
    assert not proxy.world.by("decode")


async def test_prefill_is_limited_and_decode_is_not(deploy: Deploy) -> None:
    proxy = await deploy("P+D")
    options: dict[str, Any] = {
        "min_tokens": 3,
        "max_completion_tokens": 4,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
    }
    assert (await proxy.post(chat(new_mark(), stream=True, **options))).status == 200
    prefill, decode = proxy.world.by("prefill")[0].json, proxy.world.by("decode")[0].json
    assert (prefill["min_tokens"], prefill["stream"], prefill["stream_options"]) == (0, False, None)
    assert (prefill["max_tokens"], prefill["max_completion_tokens"], prefill["temperature"]) == (1, 1, 0.5)
    assert {k: decode[k] for k in options} == options
    assert decode["stream"] is True


async def test_completions_are_prefilled_too(deploy: Deploy) -> None:
    proxy = await deploy("P+D")
    mark = new_mark()
    body = {"model": "sim", "prompt": f"{mark} once", "max_tokens": 4}
    answer = await proxy.post(body, path="/v1/completions")
    assert (answer.status, mark in answer.text) == (200, True)


# ---------------------------------------------------------------- clients


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("role", ["encode", "prefill", "decode"])
async def test_a_client_that_leaves_takes_its_requests_along(deploy: Deploy, role: str, stream: bool) -> None:
    proxy = await deploy("E+P+D")
    proxy.fault(role, Mode.HANG)
    client = await opened(proxy, with_image(new_mark(), stream=stream))
    await proxy.until(lambda: proxy.world.by(role))
    await client.close()
    await proxy.until(lambda: proxy.states(role) == ["aborted"])
    if role != "decode":
        assert not proxy.world.by("decode")
    assert proxy.core.metrics.cancelled[(role,)] == 1


async def test_a_client_that_leaves_in_a_stream(deploy: Deploy) -> None:
    proxy = await deploy()
    proxy.fault("decode", Mode.SLOW, 20)
    client = await opened(proxy, chat(new_mark(), stream=True, tokens=500))
    await client.read_until(b"data:", 3)
    await client.close()
    await proxy.until(lambda: proxy.states("decode") == ["aborted"])


async def test_a_client_that_does_not_read_pauses_the_engine(deploy: Deploy) -> None:
    proxy = await deploy()
    client = await opened(proxy, chat(new_mark(), stream=True, tokens=10_000, padding=10_000))
    await client.read_until(b"data:")
    (engine,) = proxy.engines["decode"]
    await proxy.until(lambda: any(not c.room.is_set() for c in engine.connections))
    await asyncio.sleep(0.3)
    assert proxy.states("decode") == ["open"]
    held = [c.transport.get_write_buffer_size() for c in proxy.service.clients]
    assert max(held) < 2 << 20
    await client.close()
    await proxy.until(lambda: proxy.states("decode") == ["aborted"])


async def test_a_stream_comes_through_whole_when_the_client_pauses(deploy: Deploy) -> None:
    proxy = await deploy()
    mark = new_mark()
    client = await opened(proxy, chat(mark, stream=True, tokens=4_000))
    await client.read_until(b"data:")
    await asyncio.sleep(0.3)
    answer = await client.response()
    await client.close()
    assert answer.complete
    assert len(answer.events) == 4_001
    assert answer.text.count(mark) == 4_000


async def test_one_client_id_gives_many_engine_ids(deploy: Deploy) -> None:
    proxy = await deploy()
    answers = await asyncio.gather(*(proxy.post(with_image(new_mark()), {"X-Request-Id": "same"}) for _ in range(2)))
    assert {a.headers["x-request-id"] for a in answers} == {"same"}
    ids = [r.exchange.headers["x-request-id"] for r in proxy.world.received]
    assert len(set(ids)) == len(ids) == 4


async def test_trace_context_is_passed_on(deploy: Deploy) -> None:
    proxy = await deploy("E+P+D")
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    await proxy.post(with_image(new_mark()), {"traceparent": parent, "tracestate": "a=b"})
    for received in proxy.world.received:
        assert received.exchange.headers["traceparent"].split("-")[1] == parent.split("-")[1]
        assert received.exchange.headers["tracestate"] == "a=b"


# ---------------------------------------------------------------- engines that come and go


@pytest.mark.parametrize("role", ["encode", "prefill", "decode"])
async def test_requests_go_elsewhere_when_one_of_two_engines_ends(deploy: Deploy, role: str) -> None:
    proxy = await deploy("E+P+D", prefills=2, decoders=2)
    await proxy.until(lambda: all(e.state.value == "up" for e in proxy.core.fleet.endpoints()))
    await proxy.engines[role][0].stop()
    answers = await asyncio.gather(*(proxy.post(with_image(new_mark())) for _ in range(20)))
    assert [a.text for a in answers if a.status != 200] == []


async def test_a_long_json_answer_that_breaks_is_cut_off(deploy: Deploy) -> None:
    """A megabyte is held, so the head is out when the engine dies: no end that looks like a whole answer."""
    proxy = await deploy()
    mark = new_mark()
    whole = await proxy.post(chat(mark, padding=3_000_000))
    assert (whole.status, whole.complete, mark in whole.json["choices"][0]["message"]["content"]) == (200, True, True)
    proxy.fault("decode", Mode.DIE, count=1)
    answer = await proxy.post(chat(mark, padding=3_000_000))
    assert (answer.status, answer.complete) == (200, False)
    assert 1_000_000 < len(answer.body) < 3_000_000
    assert "epd_proxy_broken_streams_total 1.0" in (await proxy.get("/metrics")).text


@pytest.mark.parametrize("topology", ["E+PD", "E+P+D"])
async def test_without_an_encoder_text_is_served_and_media_are_not(deploy: Deploy, topology: str) -> None:
    proxy = await deploy(topology, encoders=1)
    (encoder,) = proxy.engines["encode"]
    await encoder.stop()
    await proxy.until(lambda: not any(revision.complete for revision in proxy.core.fleet.serving))
    assert (await proxy.get("/health")).status == 200
    mark = new_mark()
    assert mark in (await proxy.post(chat(mark))).text
    answer = await proxy.post(chat(mark, image(data_url(mark))))
    assert (answer.status, "retry-after" in answer.headers) == (503, True)
    assert answer.error["message"] == "no encode engine is ready; without it only text is served"
    await encoder.start()
    await proxy.until(lambda: all(revision.complete for revision in proxy.core.fleet.serving))
    assert mark in (await proxy.post(chat(mark, image(data_url(mark))))).text


async def test_the_retry_budget_bounds_second_tries(deploy: Deploy) -> None:
    proxy = await deploy(decoders=2, config={"retries": {"budgetFloor": 2, "budgetRatio": 0}})
    proxy.fault("decode", Mode.STATUS, 503)
    for _ in range(5):
        assert (await proxy.post(chat(new_mark()))).status == 503
    assert len(proxy.world.by("decode")) == 5 + 2
    assert proxy.core.metrics.retries_denied[("decode",)] == 3
