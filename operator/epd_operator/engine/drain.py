"""How an instance ends without losing a request, an embedding or a KV block. All times are seconds.

A pod first stays for the time that routing needs to notice and that peers may still read from it (preStop), then
finishes what runs (--shutdown-timeout), then must go (grace period). With vLLM's default of 0 for --shutdown-timeout
a SIGTERM kills the engine at once, running requests are never answered and shared memory leaks (run on 0.32).
"""

from dataclasses import dataclass

from epd_operator.api.role import Role
from epd_operator.engine import connectors
from epd_operator.engine.wiring import Wiring

ROUTING = 10
"""EndpointSlices have reached every proxy by then."""
MARGIN = 15
"""For processes to end after their last request."""
DEFAULT_DRAIN = {Role.ENCODE: 120, Role.PREFILL: 120, Role.DECODE: 600}


@dataclass(frozen=True, slots=True)
class Drain:
    """The three times of one instance's end."""

    pre_stop_seconds: int
    shutdown_timeout_seconds: int
    grace_seconds: int


def drain_of(wiring: Wiring, role: Role) -> Drain:
    """Encoders stay for as long as a consumer may still pull, prefill for as long as its KV blocks are leased."""
    instance = wiring.instances[role]
    linger = 0
    if instance.ec_role == "ec_producer" and wiring.embeddings is not None:
        linger = connectors.embeddings_needs(wiring.embeddings.connector).linger_seconds
    if instance.kv_role == "kv_producer" and wiring.kv is not None:
        lease = wiring.kv.extra.get("kv_lease_duration")
        known = connectors.kv_needs(wiring.kv.connector).linger_seconds
        linger = max(linger, lease if isinstance(lease, int) and 0 <= lease <= 3600 else known)
    written = instance.spec.drain_timeout_seconds
    shutdown = max(1, written if written is not None else DEFAULT_DRAIN[role])
    return Drain(ROUTING + linger, shutdown, ROUTING + linger + shutdown + MARGIN)
