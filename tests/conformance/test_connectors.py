"""The proxy's wires and the simulated connectors against the code of each release's own connectors.

Nothing is moved, so that this also holds where a connector needs hardware: Mooncake, and embeddings pushed or pulled
between devices.
"""

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest

from epd_proxy.config import Role
from epd_proxy.consume import Consumption
from epd_proxy.encode import Embedded
from epd_proxy.endpoints import Endpoint
from epd_proxy.items import Item, Modality
from epd_proxy.kv import KvTransfer
from epd_proxy.pool import EnginePool
from epd_proxy.wire import wire_for
from epd_proxy.wire.base import name_transfers
from hack.vllm import fetch
from tests.conformance.conftest import Judges
from tests.simulator import dialect
from tests.simulator.dialect import Content

pytestmark = pytest.mark.conformance
CONNECTORS = ("ECExampleConnector", "ECCPUConnector", "ECMooncakeConnector")
IMAGE = Content("a", "image", "", {"image_grid_thw": [1, 16, 24]})
VIDEO = Content("b", "video", "", {"video_grid_thw": [4, 16, 24], "second_per_grid_ts": 0.5})
AUDIO = Content("c", "audio", "", {"audio_feature_lengths": 300})
SEVERAL = [IMAGE, Content("d", "image", "", {"image_grid_thw": [1, 8, 8]}), IMAGE]


def minor(release: str) -> int:
    return int(release.partition(".")[2])


RELEASES = fetch.pinned()
PUSHING = [release for release in RELEASES if minor(release) >= 30]
REPORTING = [(r, c) for r in RELEASES for c in CONNECTORS if c != "ECMooncakeConnector" or r in PUSHING]


def features(contents: Sequence[Content]) -> list[dict[str, Any]]:
    return [{"identifier": c.uuid, "modality": c.modality, "metadata": c.metadata} for c in contents]


def item(modality: Modality, uuid: str) -> Item:
    return Item(modality, 0, 0, b"", (0, 0), b"", b"", None, None, uuid)


@pytest.mark.parametrize(("judges", "connector"), REPORTING, indirect=["judges"])
def test_the_simulator_reports_what_connectors_report(judges: Judges, connector: str) -> None:
    release, vllm = judges.release, judges["cuda"]
    for contents in ([IMAGE], [VIDEO], [AUDIO], *([SEVERAL] if minor(release) >= 31 else [])):
        ids = [f"t-{content.uuid}" for content in contents]
        params = {"consumer_zmq": "tcp://10.0.0.1:14579", "ec_items": [{"transfer_id": i} for i in ids]}
        given = params if connector == "ECMooncakeConnector" else None
        real = vllm.connectors("report", connector=connector, features=features(contents), params=given)
        assert dialect.report(release, contents, "", connector, empty=False, transfers=ids) == real


def test_the_proxy_reads_what_connectors_report(judges: Judges) -> None:
    """And the consumer's front end reads what the proxy makes of it: the same vectors, in each release's form."""
    release, vllm = judges.release, judges["cuda"]
    wire = wire_for(release)
    for content in (IMAGE, VIDEO, AUDIO):
        real = vllm.connectors("report", connector="ECExampleConnector", features=features([content]))
        modality = Modality(content.modality)
        (found,) = wire.read({"ec_transfer_params": real}, [content.uuid], [modality]).features
        members = wire.embeds(found)
        if release == "0.28" and modality is not Modality.IMAGE:
            assert members is None
            continue
        assert members is not None
        part = json.loads(b"{" + members + b"}")
        payload = part[f"{content.modality}_embeds"]
        assert part["type"] == f"{content.modality}_embeds"
        assert vllm.connectors("embeds", modality=content.modality, payload=payload) == dialect.vectors(content)


@pytest.mark.parametrize("judges", PUSHING, indirect=True)
def test_pushes_find_their_transfer_ids(judges: Judges) -> None:
    """On the encoder by position, on the consumer by the hash that the encoder reported, equal items included."""
    vllm = judges["cuda"]
    wire, embedded = wire_for(judges.release), Embedded()
    for content in {content.uuid: content for content in SEVERAL}.values():
        ids = [f"t-{content.uuid}"]
        params = {"consumer_zmq": "tcp://10.0.0.1:14579", "ec_items": [{"transfer_id": ids[0]}]}
        assert vllm.connectors("transfers", features=features([content]), params=params) == ids
        real = vllm.connectors("report", connector="ECMooncakeConnector", features=features([content]), params=params)
        encoded = wire.read({"ec_transfer_params": real}, [content.uuid], [Modality.IMAGE])
        (embedded.features[content.uuid],) = encoded.features
        name_transfers(embedded.features[content.uuid], ids)
        embedded.handles |= encoded.handles
    items = [item(Modality.IMAGE, content.uuid) for content in SEVERAL]
    handles = Consumption(items, memoryview(b""), wire, embedded, push=True).handles()
    assert handles is not None
    found = vllm.connectors("transfers", features=features(SEVERAL), params=json.loads(handles))
    assert found == [f"t-{content.uuid}" for content in SEVERAL]


@pytest.mark.parametrize("judges", ["0.33"], indirect=True)
def test_a_video_and_its_audio_are_pushed_apart(judges: Judges) -> None:
    """0.33: two features in the encoder's order, which is not that of the content part."""
    vllm = judges["cuda"]
    pair = [Content("a", "audio", "", AUDIO.metadata), Content("v", "video", "", VIDEO.metadata)]
    params = {"consumer_zmq": "tcp://10.0.0.1:14579", "ec_items": [{"transfer_id": "1"}, {"transfer_id": "2"}]}
    real = vllm.connectors("report", connector="ECMooncakeConnector", features=features(pair), params=params)
    wire = wire_for("0.33")
    encoded = wire.read({"ec_transfer_params": real}, ["v"], [Modality.VIDEO])
    (found,) = encoded.features
    name_transfers(found, ["1", "2"])
    embedded = Embedded({"v": found}, encoded.handles)
    one = [item(Modality.VIDEO, "v")]
    handles = Consumption(one, memoryview(b""), wire, embedded, push=True, audio_in_video=True).handles()
    assert handles is not None
    assert vllm.connectors("transfers", features=features(pair[::-1]), params=json.loads(handles)) == ["2", "1"]
    members = wire.embeds(found)
    assert members is not None
    part = json.loads(b"{" + members + b"}")
    for content in pair:
        payload = part[f"{content.modality}_embeds"]
        assert vllm.connectors("embeds", modality=content.modality, payload=payload) == dialect.vectors(content)


def test_decode_fetches_what_mooncake_left(judges: Judges) -> None:
    pool = cast("EnginePool", None)
    prefill = Endpoint("http://10.0.0.1:8000", "10.0.0.1", 8000, Role.PREFILL, pool, "r")
    prefill.kv_connector = "MooncakeConnector"
    prefill.bootstrap_ids = {0: "engine-0", 1: "engine-1"}
    transfer = KvTransfer(prefill, 1)
    asked_of_prefill = json.loads(transfer.for_prefill())
    told = transfer.for_decode({})
    assert told is not None
    assert judges["cuda"].connectors("pull", params=json.loads(told)) == {
        "transfer_id": asked_of_prefill["transfer_id"],
        "remote_engine_id": "engine-1",
        "remote_bootstrap_addr": "http://10.0.0.1:8998",
    }
