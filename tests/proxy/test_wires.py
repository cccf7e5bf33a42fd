"""Every release's wire, end to end: what encoders report reaches the consumers in the form they take."""

from __future__ import annotations

from typing import Any

import pytest

from tests.proxy.conftest import Deploy
from tests.simulator.requests import audio, chat, data_url, image, new_mark, video

REWRITING = ("0.28", "0.29", "0.30", "0.31", "0.32", "0.33")
RELEASES = ("0.24", "0.25", "0.26", "0.27", *REWRITING)


@pytest.mark.parametrize("topology", ["E+PD", "E+P+D"])
@pytest.mark.parametrize("minor", RELEASES)
async def test_one_image(deploy: Deploy, topology: str, minor: str) -> None:
    proxy = await deploy(topology, minor=minor, embeddings="ECExampleConnector")
    mark = new_mark()
    answer = await proxy.post(chat(mark, image(data_url(mark))))
    assert answer.status == 200
    assert mark in answer.text
    (item,) = proxy.world.by("decode")[0].items
    (encoded,) = proxy.world.by("encode")[0].items
    assert item["type"] == ("image_embeds" if minor in REWRITING else "image_url")
    assert item.get("uuid") == encoded.get("uuid")
    assert ("uuid" in item) == (minor in REWRITING)


@pytest.mark.parametrize("minor", REWRITING)
async def test_several_images_keep_their_order(deploy: Deploy, minor: str) -> None:
    proxy = await deploy(minor=minor, embeddings="ECExampleConnector")
    mark = new_mark()
    urls = [data_url(mark, seed=seed) for seed in range(5)]
    answer = await proxy.post(chat(mark, *map(image, urls)))
    assert answer.status == 200
    uuids = {i["image_url"]["url"]: i["uuid"] for r in proxy.world.by("encode") for i in r.items}
    assert [i["uuid"] for i in proxy.world.by("decode")[0].items] == [uuids[u] for u in urls]


@pytest.mark.parametrize("minor", ["0.29", "0.30", "0.31", "0.33"])
async def test_video_and_audio(deploy: Deploy, minor: str) -> None:
    proxy = await deploy(minor=minor, embeddings="ECExampleConnector")
    mark = new_mark()
    parts = (video(data_url(mark, kind="video/mp4")), audio(data_url(mark).partition(",")[2]), image(data_url(mark)))
    answer = await proxy.post(chat(mark, *parts))
    assert answer.status == 200
    assert [i["type"] for i in proxy.world.by("decode")[0].items] == ["video_embeds", "audio_embeds", "image_embeds"]
    assert len(proxy.world.by("encode")) == 3


async def test_processor_options_go_along_and_fold_into_the_hash(deploy: Deploy) -> None:
    proxy = await deploy()
    mark = new_mark()
    options: dict[str, Any] = {
        "mm_processor_kwargs": {"max_pixels": 50176},
        "media_io_kwargs": {"image": {}},
        "priority": 3,
    }
    answer = await proxy.post(chat(mark, image(data_url(mark)), image(data_url(mark, seed=2)), **options))
    assert answer.status == 200
    for received in proxy.world.by("encode"):
        assert {name: received.json.get(name) for name in options} == options


async def test_equal_images_are_encoded_once(deploy: Deploy) -> None:
    proxy = await deploy()
    mark = new_mark()
    url = data_url(mark)
    assert (await proxy.post(chat(mark, image(url), image(url)))).status == 200
    assert sum(len(r.items) for r in proxy.world.by("encode")) == 1
    first, second = proxy.world.by("decode")[0].items
    assert first == second


async def test_mooncake_pushes_to_a_consumer_chosen_before(deploy: Deploy) -> None:
    proxy = await deploy(embeddings="ECMooncakeConnector", decoders=2, data_parallel=2)
    for _ in range(4):
        mark = new_mark()
        assert (await proxy.post(chat(mark, image(data_url(mark)), image(data_url(mark, seed=2))))).status == 200
    for encoded, decoded in zip(proxy.world.by("encode"), proxy.world.by("decode"), strict=False):
        rank = int(decoded.exchange.headers["x-data-parallel-rank"])
        assert encoded.json["ec_transfer_params"]["consumer_zmq"] in {f"tcp://127.0.0.1:{14579 + r}" for r in (0, 1)}
        assert rank in (0, 1)


async def test_raw_forwarding_sends_the_media_under_the_same_uuid(deploy: Deploy) -> None:
    proxy = await deploy("E+P+D", config={"mediaForwarding": "Raw"})
    mark = new_mark()
    url = data_url(mark)
    assert (await proxy.post(chat(mark, image(url)))).status == 200
    (encoded,) = proxy.world.by("encode")[0].items
    for role in ("prefill", "decode"):
        assert proxy.world.by(role)[0].items == [image(url, uuid=encoded["uuid"])]


async def test_without_an_encoder_media_travel_raw(deploy: Deploy) -> None:
    proxy = await deploy("PD")
    mark = new_mark()
    url = data_url(mark)
    assert (await proxy.post(chat(mark, image(url)))).status == 200
    (item,) = proxy.world.by("decode")[0].items
    assert item["image_url"]["url"] == url
    assert len(item["uuid"]) == 32


async def test_a_prefill_that_leaves_no_blocks_makes_decode_get_the_media(deploy: Deploy) -> None:
    proxy = await deploy("E+P+D", kv="ExampleConnector", embeddings="ECExampleConnector")
    mark = new_mark()
    assert (await proxy.post(chat(mark, image(data_url(mark))))).status == 200
    assert [i["type"] for i in proxy.world.by("prefill")[0].items] == ["image_embeds"]
    assert [i["type"] for i in proxy.world.by("decode")[0].items] == ["image_url"]


async def test_several_choices_are_prefilled_by_decode(deploy: Deploy) -> None:
    proxy = await deploy("E+P+D")
    mark = new_mark()
    assert (await proxy.post(chat(mark, image(data_url(mark)), n=2))).status == 200
    assert not proxy.world.by("prefill")
    assert [i["type"] for i in proxy.world.by("decode")[0].items] == ["image_url"]
