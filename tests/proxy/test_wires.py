"""Every release's wire, end to end: what encoders report reaches the consumers in the form they take."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.proxy.conftest import Deploy
from tests.simulator.faults import Mode
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


@pytest.mark.parametrize("topology", ["E+PD", "E+P+D"])
@pytest.mark.parametrize("embeddings", ["ECExampleConnector", "ECMooncakeConnector"])
async def test_a_video_with_its_audio_is_one_part(deploy: Deploy, topology: str, embeddings: str) -> None:
    proxy = await deploy(topology, embeddings=embeddings)
    mark = new_mark()
    body = chat(mark, video(data_url(mark, kind="video/mp4")), mm_processor_kwargs={"use_audio_in_video": True})
    assert (await proxy.post(body)).status == 200
    (item,) = proxy.world.by(proxy.world.consumer)[0].items
    assert {name for name in item if name.endswith("_embeds")} == {"video_embeds", "audio_embeds"}


@pytest.mark.parametrize("minor", ["0.30", "0.32"])
async def test_before_0_33_a_video_with_its_audio_travels_raw(deploy: Deploy, minor: str) -> None:
    """And everything else in the request with it: a processor of audio may use up other placeholders."""
    proxy = await deploy(minor=minor)
    mark = new_mark()
    parts = (video(data_url(mark, kind="video/mp4")), image(data_url(mark)))
    assert (await proxy.post(chat(mark, *parts, mm_processor_kwargs={"use_audio_in_video": True}))).status == 200
    assert [i["type"] for i in proxy.world.by("decode")[0].items] == ["video_url", "image_url"]


async def test_audio_without_metadata_makes_all_travel_raw(deploy: Deploy) -> None:
    proxy = await deploy(encoders=1)
    mark = new_mark()
    sound = data_url(mark).partition(",")[2]
    proxy.fault("encode", Mode.NO_METADATA, match=b"input_audio")
    assert (await proxy.post(chat(mark, image(data_url(mark)), audio(sound)))).status == 200
    assert [i["type"] for i in proxy.world.by("decode")[0].items] == ["image_url", "input_audio"]


async def test_items_are_spread_over_encoders_and_each_is_encoded_once(deploy: Deploy) -> None:
    proxy = await deploy(encoders=3)
    mark = new_mark()
    parts = [image(data_url(mark, seed=seed)) for seed in range(12)] + [video(data_url(mark, kind="video/mp4"))]
    assert (await proxy.post(chat(mark, *parts))).status == 200
    encoded = [(r.engine, i["uuid"]) for r in proxy.world.by("encode") for i in r.items]
    assert len({uuid for _, uuid in encoded}) == len(encoded) == len(parts)
    assert len({engine for engine, _ in encoded}) > 1


@pytest.mark.parametrize(
    "members",
    [
        {"image_url": {"url": "URL"}},
        {"image_url": "URL"},
        {"type": "text", "uuid": "of-a-client", "text": "x", "image_url": {"url": "URL"}},
        {"type": "input_image", "image_url": "URL"},
    ],
)
async def test_media_are_found_by_their_field(deploy: Deploy, members: dict[str, Any]) -> None:
    """As vLLM finds them: without a type, and in a text part."""
    proxy = await deploy()
    mark = new_mark()
    part = json.loads(json.dumps(members).replace("URL", data_url(mark)))
    assert (await proxy.post(chat(mark, part))).status == 200
    (encoded,) = proxy.world.by("encode")[0].items
    (item,) = proxy.world.by("decode")[0].items
    assert (encoded["type"], item["type"]) == ("image_url", "image_embeds")
    assert item["uuid"] == encoded["uuid"] != "of-a-client"


@pytest.mark.parametrize("data_parallel", [1, 2])
async def test_mooncake_names_the_transfer_of_blocks_on_both_sides(deploy: Deploy, data_parallel: int) -> None:
    proxy = await deploy("E+P+D", kv="MooncakeConnector", data_parallel=data_parallel)
    for _ in range(3):
        mark = new_mark()
        assert (await proxy.post(chat(mark, image(data_url(mark))))).status == 200
    for prefill, decode in zip(proxy.world.by("prefill"), proxy.world.by("decode"), strict=True):
        asked, told = prefill.json["kv_transfer_params"], decode.json["kv_transfer_params"]
        assert asked["transfer_id"] == told["transfer_id"]
        rank = prefill.exchange.headers.get("x-data-parallel-rank", "0")
        assert told["remote_engine_id"] == f"engine-{rank}"
        assert told["remote_bootstrap_addr"] == proxy.engines["prefill"][0].url
    ids = [r.json["kv_transfer_params"]["transfer_id"] for r in proxy.world.by("decode")]
    assert len(set(ids)) == 3


@pytest.mark.parametrize(
    ("prompt", "apart"),
    [("hello", True), (["hello"], True), ([1, 2, 3], True), (["a", "b"], False), ([[1], [2]], False)],
)
async def test_several_prompts_are_prefilled_by_decode(deploy: Deploy, prompt: Any, apart: bool) -> None:
    """One answer of a prefill can name the blocks of one prompt only."""
    proxy = await deploy("E+P+D")
    assert (await proxy.post({"model": "sim", "prompt": prompt}, path="/v1/completions")).status == 200
    assert bool(proxy.world.by("prefill")) == apart
    assert ("kv_transfer_params" in proxy.world.by("decode")[0].json) == apart
