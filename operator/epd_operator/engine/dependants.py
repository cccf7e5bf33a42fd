"""What the peers of an instance need when it is replaced, by connector.

A peer keeps what it learned in a hand-shake: an engine id, an address, registered memory. A replacement has another
engine id, since vLLM makes one at each start (config/kv_transfer.py, 0.28 to 0.33), and so is a new peer to them. What
differs is the address: a new pod has its own; a container that restarts in its pod, or a pod on the host network,
comes back under the old one, and then what was kept of the dead engine is in the way.
"""

from dataclasses import dataclass
from enum import StrEnum

from epd_operator.engine import connectors
from epd_operator.engine.release import OLDEST, Release


class Side(StrEnum):
    """Which end of a transfer was replaced."""

    PRODUCER = "producer"
    """Encode for embeddings, prefill for KV blocks."""
    CONSUMER = "consumer"


class Reaction(StrEnum):
    """What the instances at the other end need."""

    NOTHING = "nothing"
    """They know no peers."""
    HANDSHAKE = "handshake"
    """They do it themselves at the next request."""
    RESTART = "restart"
    """They do not recover: transfers fail or the engine dies until they are restarted."""


@dataclass(frozen=True, slots=True)
class Dependants:
    """One row: what a replaced instance means for those at the other end."""

    connector: str
    replaced: Side
    at_new_address: Reaction
    at_old_address: Reaction
    source: str
    since: Release = OLDEST
    until: Release | None = None
    """First release that the row does not hold for."""


REPLACED_PULL_PEERS = Release(0, 31)
"""First release whose pull workers release what they kept of an engine that another one replaced at its address."""
_STALE = "vllm#49238: decode segfaults in loadRemoteMD after prefill came back; nixl up to 1.3.2"
_STALE_PRODUCER = "vllm#49238, smg#2382: prefill keeps a dead decode's endpoint and every transfer through it fails"
_PULL = "nixl/base_worker.py _track_remote_engine_replacement, from 0.31; before, only engine_ttl (an hour) ends it"
_PUSH = "nixl/base_worker.py 0.33: replacements are tracked in pull mode only"
_MOONCAKE = (
    "mooncake_connector.py handle_new_engine_id: an unknown engine id is asked of the producer's bootstrap server"
)
_FILES = "files are found by content; no peer is known"
_EC_CPU = "ec_connector/cpu/session.py _ensure_registered, 0.30 to 0.33: a restarted producer is registered again"
_EC_CPU_CONSUMER = "ec_connector/cpu/session.py: the producer serves whoever asks, and the consumer begins each session"
_EC_MOONCAKE = "ec_connector/mooncake/producer.py: the consumer's address comes with each request"


def _pull(connector: str) -> tuple[Dependants, ...]:
    new, old = Reaction.HANDSHAKE, Reaction.RESTART
    return (
        Dependants(connector, Side.PRODUCER, new, old, _STALE, until=REPLACED_PULL_PEERS),
        Dependants(connector, Side.PRODUCER, new, Reaction.HANDSHAKE, _PULL, since=REPLACED_PULL_PEERS),
        Dependants(connector, Side.CONSUMER, new, old, _STALE_PRODUCER),
    )


def _both(connector: str, new: Reaction, old: Reaction, source: str) -> tuple[Dependants, ...]:
    return tuple(Dependants(connector, side, new, old, source) for side in Side)


TABLE: tuple[Dependants, ...] = (
    *_pull("NixlConnector"),
    *_pull("NixlPullConnector"),
    *_both("NixlPushConnector", Reaction.HANDSHAKE, Reaction.RESTART, _PUSH),
    *_both(connectors.KV_MOONCAKE, Reaction.HANDSHAKE, Reaction.HANDSHAKE, _MOONCAKE),
    *_both(connectors.KV_EXAMPLE, Reaction.NOTHING, Reaction.NOTHING, _FILES),
    *_both(connectors.EC_EXAMPLE, Reaction.NOTHING, Reaction.NOTHING, _FILES),
    Dependants(connectors.EC_CPU, Side.PRODUCER, Reaction.HANDSHAKE, Reaction.HANDSHAKE, _EC_CPU),
    Dependants(connectors.EC_CPU, Side.CONSUMER, Reaction.HANDSHAKE, Reaction.HANDSHAKE, _EC_CPU_CONSUMER),
    *_both(connectors.EC_MOONCAKE, Reaction.HANDSHAKE, Reaction.HANDSHAKE, _EC_MOONCAKE),
)


def dependants_need(connector: str, release: Release, replaced: Side, *, same_address: bool) -> Reaction:
    """What the instances at the other end of a connector need after one at the `replaced` side came back.

    A connector that is not in the table is taken to hand-shake with new addresses and to keep stale state of old ones.
    """
    for row in TABLE:
        if row.connector == connector and row.replaced is replaced and release.is_within(row.since, row.until):
            return row.at_old_address if same_address else row.at_new_address
    return Reaction.RESTART if same_address else Reaction.HANDSHAKE
