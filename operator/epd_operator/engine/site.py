"""Where an instance runs: all that differs between a pod and a local process. None of it enters a hash."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ports:
    """Ports that one instance listens on. The fixed ones of a pod are disjoint for up to 100 data-parallel ranks."""

    http: int = 8000
    embeddings_side_channel: int = 5500
    """VLLM_EC_SIDE_CHANNEL_PORT: producers bind it, without an offset by rank. vLLM's own default, 5601, is what the
    KV side channel of rank 1 binds."""
    kv_side_channel: int = 5600
    """VLLM_NIXL_SIDE_CHANNEL_PORT: plus the data-parallel rank."""
    embeddings_push: int = 14579
    """ec_port of ECMooncakeConnector consumers: plus rank x tensor parallelism + tensor rank."""
    mooncake_bootstrap: int = 8998
    """VLLM_MOONCAKE_BOOTSTRAP_PORT of MooncakeConnector producers."""


@dataclass(frozen=True, slots=True)
class Site:
    """Paths and addresses as one instance sees them."""

    local: bool = False
    """A process on this machine instead of a pod."""
    models: str = "/models"
    """Where the model volume is."""
    embeddings_directory: str = "/var/lib/epd/embeddings"
    """Shared directory of ECExampleConnector."""
    kv_directory: str = "/var/lib/epd/kv"
    """Shared directory of ExampleConnector."""
    address: str = "$(POD_IP)"
    """Address at which peers reach the instance."""
    ports: Ports = Ports()


POD = Site()
"""The site of every pod: kubelet puts the pod's address in for $(POD_IP)."""
