"""The two transfer configurations of an instance: --ec-transfer-config and --kv-transfer-config.

Fields: vllm/config/ec_transfer.py and kv_transfer.py of 0.28 to 0.33 (ec_rank, kv_rank and their like are gone from
0.32, so they are never written).
"""

from typing import Any

from epd_operator.engine import connectors
from epd_operator.engine.instance import Instance
from epd_operator.engine.memory import ec_cpu_bytes
from epd_operator.engine.site import Site
from epd_operator.engine.wiring import Wiring

PRODUCER_KEYS = ("cross_encoder_cache",)
"""Keys of extraConfig that only the producer's process may be given."""


def embeddings_config(wiring: Wiring, instance: Instance, site: Site) -> dict[str, Any] | None:
    """--ec-transfer-config of an instance; None where it takes no part in the transfer."""
    choice = wiring.embeddings
    if choice is None or instance.ec_role is None:
        return None
    config: dict[str, Any] = {"ec_connector": choice.connector, "ec_role": instance.ec_role}
    extra: dict[str, Any] = {}
    if choice.connector == connectors.EC_EXAMPLE:
        extra["shared_storage_path"] = site.embeddings_directory
    elif choice.connector == connectors.EC_CPU:
        extra["ec_cpu_bytes"] = ec_cpu_bytes(wiring)
        extra["ec_enable_nixl"] = True
    elif choice.connector == connectors.EC_MOONCAKE and instance.ec_role == "ec_consumer":
        config["ec_ip"] = site.address
        config["ec_port"] = site.ports.embeddings_push
    extra |= {key: value for key, value in choice.extra.items() if _meant_for(key, instance)}
    if extra:
        config["ec_connector_extra_config"] = extra
    return config


def _meant_for(key: str, instance: Instance) -> bool:
    """Consumers refuse what is the producer's own (ec_connector/mooncake/config.py from 0.31)."""
    return key not in PRODUCER_KEYS or instance.ec_role == "ec_producer"


def kv_config(wiring: Wiring, instance: Instance, site: Site) -> dict[str, Any] | None:
    """--kv-transfer-config of an instance; None where it takes no part in the transfer."""
    choice = wiring.kv
    if choice is None or instance.kv_role is None:
        return None
    config: dict[str, Any] = {"kv_connector": choice.connector, "kv_role": instance.kv_role}
    extra: dict[str, Any] = {}
    if choice.connector == connectors.KV_EXAMPLE:
        extra["shared_storage_path"] = site.kv_directory
    extra |= choice.extra
    if extra:
        config["kv_connector_extra_config"] = extra
    return config
