"""The fixed ports that an instance listens on in its pod."""

from epd_operator.engine import connectors
from epd_operator.engine.instance import Instance
from epd_operator.engine.site import POD
from epd_operator.engine.wiring import Wiring


def fixed_ports(wiring: Wiring, instance: Instance) -> dict[str, int]:
    """Name (at most 15 characters, as Kubernetes' port names) -> number; one for each rank that has its own."""
    ports = {"http": POD.ports.http}
    if instance.ec_role == "ec_producer" and wiring.embeddings_by(connectors.EC_CPU) is not None:
        ports["ec-side"] = POD.ports.embeddings_side_channel
    if instance.ec_role == "ec_consumer" and wiring.embeddings_by(connectors.EC_MOONCAKE) is not None:
        ranks = range(instance.data * instance.tensor)
        ports |= {f"ec-push-{rank}": POD.ports.embeddings_push + rank for rank in ranks}
    if instance.kv_role is None or wiring.kv is None:
        return ports
    if connectors.kv_needs(wiring.kv.connector).nixl:
        ports |= {f"kv-side-{rank}": POD.ports.kv_side_channel + rank for rank in range(instance.data)}
    if wiring.kv.connector == connectors.KV_MOONCAKE and instance.kv_role == "kv_producer":
        ports["kv-bootstrap"] = POD.ports.mooncake_bootstrap
    return ports
