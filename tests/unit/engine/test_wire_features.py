"""The proxy's wires and the capability tables say the same of each release."""

import pytest

from epd_operator.engine.capabilities import capabilities, known_minors
from epd_operator.engine.release import Release
from epd_proxy.wire import WIRES, Feature

MINORS = [f"{major}.{minor}" for major, minor in known_minors()]
IMAGE = Feature("image", {"image_grid_thw": [1, 2, 3]}, "hash")


@pytest.mark.parametrize("minor", MINORS)
def test_wires_and_tables_agree(minor: str) -> None:
    features, wire = capabilities(Release.parse(minor)).wire, WIRES[minor]
    written = wire.embeds([IMAGE]) or b""
    assert (b"[1,2,3]" in written) == ("json-metadata" in features)
    assert (wire.images_a_request > 1) == ("item-indices" in features)
    assert wire.audio_in_video == ("modality" in features)
    assert ("items-in-order" in features) != ("items-by-hash" in features)


def test_every_release_with_a_table_has_a_wire() -> None:
    assert set(MINORS) <= WIRES.keys()
