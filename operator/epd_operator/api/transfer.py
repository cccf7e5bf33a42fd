"""How embeddings and KV blocks get from one role to the next."""

from typing import Annotated

from pydantic import Field

from epd_operator.api.base import APIModel, OpenObject, Str
from epd_operator.api.quantity import Quantity
from epd_operator.api.volume import SharedVolume

ConnectorName = Annotated[Str, Field(max_length=128, pattern=r"^[A-Za-z][A-Za-z0-9_]*$")]


class Embeddings(APIModel):
    """Encoder to consumer."""

    connector: ConnectorName | None = None
    """vLLM's name, for example ECExampleConnector, ECCPUConnector or ECMooncakeConnector. Default: ECExampleConnector
    with a volume, on CPU devices and for `epd run`; else ECCPUConnector over NIXL from vLLM 0.30. The choice is kept
    in status.defaults. A change makes a new revision."""
    volume: SharedVolume | None = None
    """Directory that encoder and consumers share (ECExampleConnector). A change makes a new revision."""
    cache_size: Quantity | None = None
    """Bytes of embeddings kept: ec_cpu_bytes of ECCPUConnector (default 4Gi), or what the pruner leaves in the shared
    directory of ECExampleConnector (default: no bound, only age). A change restarts encode and its consumers."""
    extra_config: OpenObject | None = None
    """vLLM's ec_connector_extra_config, keys verbatim. A change makes a new revision."""


class KV(APIModel):
    """Prefill to decode."""

    connector: ConnectorName | None = None
    """vLLM's name, for example NixlConnector, MooncakeConnector or ExampleConnector. Default NixlConnector. A change
    makes a new revision."""
    volume: SharedVolume | None = None
    """Directory that prefill and decode share (ExampleConnector). Default: embeddings.volume. A change makes a new
    revision."""
    extra_config: OpenObject | None = None
    """vLLM's kv_connector_extra_config, keys verbatim. A change makes a new revision."""


class Transfer(APIModel):
    """Transfers between roles. The roles present decide which there are."""

    embeddings: Embeddings | None = None
    """Encoder to consumer; of deployments with encode."""
    kv: KV | None = None
    """Prefill to decode; of deployments with prefill."""
