"""The adapters against reports as vLLM writes them. End to end they are tested with the simulator."""

from typing import Any

import pytest

from epd_proxy.items import Modality
from epd_proxy.wire import WIRES, UnknownReleaseError, WireError, minor_of, wire_for
from epd_proxy.wire.base import flat
from epd_proxy.wire.tensor import saved_tensor
from tests.simulator.dialect import load_tensor

IMAGE, VIDEO, AUDIO = Modality.IMAGE, Modality.VIDEO, Modality.AUDIO


def entry(*indices: int, **more: Any) -> dict[str, Any]:
    return {"metadata": {"image_grid_thw": [[1, 2, 4]]}, "item_indices": list(indices), **more}


@pytest.mark.parametrize(
    ("version", "minor"), [("0.33.0", "0.33"), ("v0.30.1", "0.30"), ("0.32.0+cpu", "0.32"), ("0.31.2.dev5", "0.31")]
)
def test_versions(version: str, minor: str) -> None:
    assert minor_of(version) == minor
    assert wire_for(version) is WIRES[minor]


@pytest.mark.parametrize("version", ["", "dev", "0.23.0", "0.34.0", "1.0.0", "0.330"])
def test_unknown_versions(version: str) -> None:
    with pytest.raises(UnknownReleaseError):
        wire_for(version)


def test_the_order_of_a_report_does_not_matter() -> None:
    params = {"h2": entry(1), "h1": entry(0, 2)}
    encoded = wire_for("0.31.0").read({"ec_transfer_params": params}, ["u0", "u1", "u2"], [IMAGE] * 3)
    assert [f[0].engine_hash for f in encoded.features] == ["h1", "h2", "h1"]
    assert encoded.handles == params


def test_two_entries_for_one_item_are_an_error() -> None:
    with pytest.raises(WireError):
        wire_for("0.31.0").read({"ec_transfer_params": {"a": entry(0), "b": entry(0)}}, ["u"], [IMAGE])


@pytest.mark.parametrize("minor", ["0.30", "0.31", "0.33"])
def test_without_positions_uuids_match_and_else_the_only_entry(minor: str) -> None:
    report = {"metadata": {"image_grid_thw": [1, 2, 4]}}
    wire = wire_for(minor)
    by_uuid = wire.read({"ec_transfer_params": {"u": report, "x": report}}, ["u", "v"], [IMAGE] * 2)
    assert [len(f) for f in by_uuid.features] == [1, 0]
    only = wire.read({"ec_transfer_params": {"hash": report}}, ["u"], [IMAGE])
    assert only.features[0][0].engine_hash == "hash"


@pytest.mark.parametrize("minor", WIRES)
@pytest.mark.parametrize(
    "answer", [{}, {"ec_transfer_params": None}, {"ec_transfer_params": {}}, {"ec_transfer_params": [1]}]
)
def test_nothing_reported_is_nothing_rewritten(minor: str, answer: dict[str, Any]) -> None:
    encoded = wire_for(minor).read(answer, ["u"], [IMAGE])
    assert encoded.features == [[]]
    assert wire_for(minor).embeds(encoded.features[0]) is None


@pytest.mark.parametrize("metadata", [{}, {"image_grid_thw": "x"}, {"image_grid_thw": [[None]]}, {"a": {"b": 1}}])
def test_metadata_that_is_no_tensor_is_not_passed_on(metadata: dict[str, Any]) -> None:
    encoded = wire_for("0.33").read({"ec_transfer_params": {"u": {"metadata": metadata}}}, ["u"], [IMAGE])
    assert wire_for("0.33").embeds(encoded.features[0]) is None


def test_a_video_and_its_audio_are_one_part() -> None:
    params = {
        "a": {"metadata": {"audio_feature_lengths": [9]}, "modality": "audio", "item_indices": [0]},
        "v": {"metadata": {"video_grid_thw": [[4, 2, 2]]}, "modality": "video", "item_indices": [1]},
    }
    wire = wire_for("0.33")
    (features,) = wire.read({"ec_transfer_params": params}, ["u"], [VIDEO]).features
    assert wire.embeds(features) == (
        b'"type":"video_embeds","video_embeds":{"video_grid_thw":[4,2,2]},"audio_embeds":{"audio_feature_lengths":[9]}'
    )


def test_0_28_takes_images_only_and_a_grid_of_three() -> None:
    report = {"ec_items": [{"mm_hash": "h", "image_grid_thw": [[1, 2, 4], [9, 9, 9]]}]}
    for minor, count in (("0.28", 3), ("0.29", 6)):
        (features,) = wire_for(minor).read({"ec_transfer_params": report}, ["u"], [IMAGE]).features
        members = wire_for(minor).embeds(features)
        assert members is not None
        assert len(load_tensor(members.decode().rsplit('"', 2)[1])) == count
    (features,) = wire_for("0.28").read({"ec_transfer_params": report}, ["u"], [AUDIO]).features
    assert wire_for("0.28").embeds(features) is None


@pytest.mark.parametrize("values", [[1, 2, 3], [], [2**40, -1], [0.5, 2]])
def test_saved_tensors_are_read_back(values: list[float]) -> None:
    assert load_tensor(saved_tensor(values)) == values


@pytest.mark.parametrize(
    ("value", "out"), [(1, [1]), ([[1, 2], [3]], [1, 2, 3]), ([0.5], [0.5]), ([True], None), ({}, None)]
)
def test_flat(value: Any, out: list[float] | None) -> None:
    assert flat(value) == out
