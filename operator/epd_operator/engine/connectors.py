"""vLLM's connectors as far as the wiring depends on them.

Which release knows which connector is in the capability tables; here is what each one needs of its surroundings.
Sources: vllm/distributed/ec_transfer/ec_connector/ and vllm/distributed/kv_transfer/kv_connector/v1/ of 0.28 to 0.33.
"""

from dataclasses import dataclass

from epd_operator.engine.release import Release

EC_EXAMPLE = "ECExampleConnector"
EC_CPU = "ECCPUConnector"
EC_MOONCAKE = "ECMooncakeConnector"
KV_NIXL = "NixlConnector"
KV_MOONCAKE = "MooncakeConnector"
KV_EXAMPLE = "ExampleConnector"
KV_DEFAULT = KV_NIXL

EC_CPU_NIXL_SINCE = Release(0, 30)
"""First release in which ECCPUConnector moves embeddings between instances (ec_enable_nixl)."""
V2_ON_CPU_SINCE = Release(0, 33)
"""First release whose V2 model runner, which ECCPUConnector requires, does not refuse a CPU (config/vllm.py)."""
EC_CPU_DEFAULT_BYTES = 4 << 30
"""Default of ec_cpu_bytes, which vLLM demands and has no default for (ec_connector/cpu/common.py)."""


@dataclass(frozen=True, slots=True)
class ConnectorNeeds:
    """What a connector needs of its surroundings."""

    shared_directory: bool = False
    """Both sides mount one directory, given as shared_storage_path."""
    side_channel: bool = False
    """An address and port of the instance that peers connect to."""
    nixl: bool = False
    """The nixl package in the image."""
    mooncake: bool = False
    """The mooncake-transfer-engine package in the image."""
    linger_seconds: int = 0
    """How long a peer may still read from an instance after its last request has ended."""
    device_memory: bool = False
    """Moves device memory, so both sides need the same type of device."""


EMBEDDINGS: dict[str, ConnectorNeeds] = {
    EC_EXAMPLE: ConnectorNeeds(shared_directory=True),
    # A consumer waits up to 60 s for a pull (cpu/scheduler, _ADMIT_DEFER_TIMEOUT_S) and acknowledges within 30 s.
    EC_CPU: ConnectorNeeds(side_channel=True, nixl=True, linger_seconds=60),
    # push_wait_timeout_s is 60 (mooncake/config.py); buffers are on the device by default.
    EC_MOONCAKE: ConnectorNeeds(side_channel=True, mooncake=True, linger_seconds=60, device_memory=True),
}

_NIXL = ConnectorNeeds(side_channel=True, nixl=True, linger_seconds=30, device_memory=True)
KV: dict[str, ConnectorNeeds] = {
    # A decode instance must start reading within kv_lease_duration, 30 s (nixl/).
    "NixlConnector": _NIXL,
    "NixlPullConnector": _NIXL,
    "NixlPushConnector": _NIXL,
    # VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT is 480 s; reads start at once, so a minute covers all but stuck ones.
    KV_MOONCAKE: ConnectorNeeds(side_channel=True, mooncake=True, linger_seconds=60, device_memory=True),
    KV_EXAMPLE: ConnectorNeeds(shared_directory=True),
}
UNKNOWN_NEEDS = ConnectorNeeds(side_channel=True, linger_seconds=60)
"""Assumed of a connector that is known to a release but not here."""


def embeddings_needs(connector: str) -> ConnectorNeeds:
    """What an embeddings connector needs."""
    return EMBEDDINGS.get(connector, UNKNOWN_NEEDS)


def kv_needs(connector: str) -> ConnectorNeeds:
    """What a KV connector needs."""
    return KV.get(connector, UNKNOWN_NEEDS)
