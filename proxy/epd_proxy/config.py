"""The proxy's configuration: one versioned YAML document.

The operator writes it into a ConfigMap and the proxy re-reads it when it changes. Endpoints and revisions are never in
it: they come from EndpointSlices, or from the command line. This module imports pydantic only, since the operator's
`manifests` import it too.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

API_VERSION: Final = "proxy.epd.dev/v1alpha1"
KIND: Final = "ProxyConfig"

KIB: Final = 1024
MIB: Final = 1024 * KIB

Bytes = Annotated[int, Field(gt=0)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Role(StrEnum):
    """What an engine does for a request."""

    ENCODE = "encode"
    PREFILL = "prefill"
    DECODE = "decode"


class MediaForwarding(StrEnum):
    """What the consumer of an encoded item is sent."""

    METADATA = "Metadata"
    RAW = "Raw"


class CacheScope(StrEnum):
    """Who shares the embeddings of equal media."""

    TENANT = "Tenant"
    DEPLOYMENT = "Deployment"


class _Section(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True, use_enum_values=False
    )


class Listen(_Section):
    """Where clients connect."""

    host: str = Field(default="0.0.0.0", description="Address to bind.")  # noqa: S104  a pod's only address
    port: int = Field(default=8000, ge=0, le=65535, description="TCP port; 0 picks a free one.")
    workers: int = Field(
        default=1, ge=1, le=256, description="Processes that share the port (SO_REUSEPORT); limits are divided by it."
    )


class Media(_Section):
    """Which media a request may carry."""

    allowed_domains: tuple[str, ...] = Field(
        default=(), description="Hosts whose http(s) URLs are taken, exact match; none: only data: URLs."
    )
    allow_private_addresses: bool = Field(
        default=False,
        description="Take URLs of allowed hosts that resolve to private, loopback or link-local addresses.",
    )
    max_size: Bytes = Field(default=32 * MIB, description="Bytes of one item as it stands in the body (base64).")
    max_items: int = Field(default=64, ge=0, description="Media items in one request.")
    urls_immutable: bool = Field(
        default=False, description="A URL always names the same content, so that its embeddings may be used again."
    )
    cache_scope: CacheScope = Field(
        default=CacheScope.TENANT,
        description="Tenant: equal media of two API keys are encoded twice; Deployment: once.",
    )

    @field_validator("allowed_domains")
    @classmethod
    def _bare_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for domain in value:
            if not domain or any(c in domain for c in "/:@*? \t") or domain != domain.strip("."):
                raise ValueError(f"{domain!r} is not a bare host name, such as images.example.com")
        return tuple(domain.lower() for domain in value)


class Limits(_Section):
    """What the proxy takes on at once; beyond it a client is told to come back later."""

    body_size: Bytes = Field(default=64 * MIB, description="Bytes of one request body; more is answered 413.")
    text_size: Bytes = Field(
        default=4 * MIB, description="Bytes of one body without its media, which are parsed as JSON; more is 413."
    )
    in_flight_size: Bytes = Field(
        default=1024 * MIB, description="Bytes of all bodies held at once; more is answered 503 with Retry-After."
    )
    in_flight_requests: int = Field(default=4096, gt=0, description="Requests at once; more is 503 with Retry-After.")
    connections: int = Field(default=8192, gt=0, description="Client connections; more are closed at once.")
    encoder_requests: int = Field(default=64, gt=0, description="Requests at one encoder at once; more wait.")
    encoder_queue: int = Field(default=256, ge=0, description="Requests that wait for one encoder; more is 503.")


class Timeouts(_Section):
    """How long each step may take. There is no total: a stream may last for hours."""

    connect_seconds: Seconds = Field(default=2.0, description="TCP connect to an engine.")
    queue_seconds: Seconds = Field(default=30.0, description="Waiting for a free place at an encoder.")
    encode_seconds: Seconds = Field(default=120.0, description="From the encoder request to its whole answer.")
    prefill_seconds: Seconds = Field(default=300.0, description="From the prefill request to its whole answer.")
    first_byte_seconds: Seconds = Field(default=600.0, description="From the decode request to its response head.")
    idle_seconds: Seconds = Field(default=300.0, description="Between two pieces of a decode answer.")
    client_head_seconds: Seconds = Field(default=30.0, description="From a connection's first byte to the whole head.")
    client_body_seconds: Seconds = Field(default=60.0, description="Between two pieces of a request body.")
    client_keep_alive_seconds: Seconds = Field(default=75.0, description="A client connection without a request.")
    engine_keep_alive_seconds: Seconds = Field(
        default=5.0, description="The engines' own keep-alive; pooled connections are closed after half of it."
    )
    probe_seconds: Seconds = Field(default=5.0, description="One health check of an engine.")
    probe_interval_seconds: Seconds = Field(default=5.0, description="Between two health checks of an engine.")


class Retries(_Section):
    """Second tries, all of them before the client was sent a response head."""

    attempts: int = Field(default=2, ge=1, le=8, description="Tries of one stage of one request, the first included.")
    budget_ratio: float = Field(
        default=0.2, ge=0, le=1, description="Second tries as a share of the requests of the last ten seconds."
    )
    budget_floor: int = Field(default=10, ge=0, description="Second tries that are always allowed in ten seconds.")


class SecretFiles(_Section):
    """Files that hold secrets; they are read again when they change."""

    api_keys_directory: str | None = Field(
        default=None, description="Every file in it is a client's API key, its name the tenant; none: no key is asked."
    )
    engine_key_file: str | None = Field(default=None, description="The key that engines ask for (VLLM_API_KEY).")
    uuid_key_file: str | None = Field(
        default=None, description="The key of content uuids; none: a random one for each start."
    )


class Discovery(_Section):
    """EndpointSlices of one deployment."""

    namespace: str = Field(min_length=1, description="Namespace of the deployment.")
    instance: str = Field(min_length=1, description="Value of the label app.kubernetes.io/instance.")


class Drain(_Section):
    """What SIGTERM does."""

    delay_seconds: float = Field(
        default=0.0, ge=0, description="How long new connections are still taken, for routing to notice the end."
    )
    timeout_seconds: Seconds = Field(default=600.0, description="How long running requests may still take.")


class Tracing(_Section):
    """OpenTelemetry spans of the proxy's own; trace context is passed on in any case."""

    endpoint: str | None = Field(default=None, description="OTLP/HTTP base URL; none: no spans.")
    sample_ratio: float = Field(default=0.01, ge=0, le=1, description="Share of requests without a parent to trace.")


class ProxyConfig(_Section):
    """All that a proxy is told."""

    api_version: Literal["proxy.epd.dev/v1alpha1"] = API_VERSION
    kind: Literal["ProxyConfig"] = KIND
    served_names: tuple[str, ...] = Field(
        default=(), description="Names of the model; an engine that serves none of them is not used. None: any."
    )
    roles: tuple[Role, ...] = Field(
        default=(), description="Roles that must be there before the proxy says that it is ready."
    )
    media_forwarding: MediaForwarding = MediaForwarding.METADATA
    media: Media = Media()
    limits: Limits = Limits()
    timeouts: Timeouts = Timeouts()
    retries: Retries = Retries()
    secrets: SecretFiles = SecretFiles()
    discovery: Discovery | None = None
    listen: Listen = Listen()
    drain: Drain = Drain()
    tracing: Tracing = Tracing()
    access_log: bool = Field(default=False, description="One JSON line a request on standard output, without content.")

    def to_document(self) -> dict[str, Any]:
        """Return the configuration as plain JSON data, unset and default values left out."""
        document = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return {"apiVersion": self.api_version, "kind": self.kind, **document}
