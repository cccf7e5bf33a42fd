"""O10: what the peers of a replaced instance need."""

import pytest

from epd_operator.engine import connectors
from epd_operator.engine.dependants import TABLE, Reaction, Side, dependants_need
from epd_operator.engine.release import OLDEST, Release

NEW, OLD = False, True
CASES = [
    ("NixlConnector", "0.28.0", Side.PRODUCER, OLD, Reaction.RESTART),
    ("NixlConnector", "0.30.2", Side.PRODUCER, OLD, Reaction.RESTART),
    ("NixlConnector", "0.31.0", Side.PRODUCER, OLD, Reaction.HANDSHAKE),
    ("NixlConnector", "0.33.0", Side.PRODUCER, NEW, Reaction.HANDSHAKE),
    ("NixlConnector", "0.33.0", Side.CONSUMER, OLD, Reaction.RESTART),
    ("NixlConnector", "0.33.0", Side.CONSUMER, NEW, Reaction.HANDSHAKE),
    ("NixlPushConnector", "0.33.0", Side.PRODUCER, OLD, Reaction.RESTART),
    ("MooncakeConnector", "0.33.0", Side.PRODUCER, OLD, Reaction.HANDSHAKE),
    ("ExampleConnector", "0.33.0", Side.PRODUCER, OLD, Reaction.NOTHING),
    ("ECExampleConnector", "0.28.0", Side.PRODUCER, OLD, Reaction.NOTHING),
    ("ECCPUConnector", "0.30.0", Side.PRODUCER, OLD, Reaction.HANDSHAKE),
    ("ECMooncakeConnector", "0.33.0", Side.CONSUMER, NEW, Reaction.HANDSHAKE),
    ("AConnectorOfNextYear", "0.99.0", Side.PRODUCER, OLD, Reaction.RESTART),
    ("AConnectorOfNextYear", "0.99.0", Side.PRODUCER, NEW, Reaction.HANDSHAKE),
]


@pytest.mark.parametrize(("connector", "release", "replaced", "same_address", "reaction"), CASES)
def test_what_peers_need(connector: str, release: str, replaced: Side, same_address: bool, reaction: Reaction) -> None:
    assert dependants_need(connector, Release.parse(release), replaced, same_address=same_address) is reaction


@pytest.mark.parametrize("connector", [*connectors.EMBEDDINGS, *connectors.KV])
@pytest.mark.parametrize("side", Side)
def test_each_connector_has_one_row_for_each_release(connector: str, side: Side) -> None:
    for release in (OLDEST, *(Release(0, minor) for minor in range(29, 40))):
        rows = [
            row
            for row in TABLE
            if row.connector == connector
            and row.replaced is side
            and row.since <= release
            and (row.until is None or release < row.until)
        ]
        assert len(rows) == 1
        assert rows[0].source


def test_a_new_pod_never_restarts_its_peers() -> None:
    assert all(row.at_new_address is not Reaction.RESTART for row in TABLE)
