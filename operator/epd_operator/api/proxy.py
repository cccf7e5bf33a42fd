"""The proxy in front of the roles."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from epd_operator.api.base import Annotations, APIModel, Bool, Count, NoDuplicates, Seconds, Str
from epd_operator.api.engine import ImagePullPolicy, ImageReference, LocalObjectReference
from epd_operator.api.pod import PodTemplate, Resources
from epd_operator.api.quantity import Quantity


class ServiceType(StrEnum):
    """Kubernetes' Service types that make sense here."""

    CLUSTER_IP = "ClusterIP"
    NODE_PORT = "NodePort"
    LOAD_BALANCER = "LoadBalancer"


class MediaForwarding(StrEnum):
    """What the consumer of an encoded item is sent."""

    METADATA = "Metadata"
    RAW = "Raw"


class Service(APIModel):
    """The Service that clients use, named <deployment>-proxy."""

    type: ServiceType | None = None
    """ClusterIP (default), NodePort or LoadBalancer. Restarts nothing."""
    port: Annotated[int, Field(strict=True, ge=1, le=65535)] | None = None
    """Port of the Service. Default 8000. Restarts nothing."""
    annotations: Annotations | None = None
    """Added to the Service, for load balancers. Restarts nothing."""


class Media(APIModel):
    """Which media requests may bring. The engines are given the same policy."""

    allowed_domains: (
        Annotated[
            list[Annotated[Str, Field(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]],
            NoDuplicates,
            Field(max_length=256, json_schema_extra={"x-kubernetes-list-type": "set"}),
        ]
        | None
    ) = None
    """Host names that media URLs may name, exactly. Default: none, only data: URLs. Restarts encode and its
    consumers."""
    max_size: Quantity | None = None
    """Largest single item, bytes as sent (base64). Default 32Mi. Restarts nothing."""
    max_items: Annotated[int, Field(strict=True, ge=1, le=1000)] | None = None
    """Most items in one request. Default 64. Restarts nothing."""
    urls_immutable: Bool | None = None
    """A URL always names the same content, so that its embeddings may be used again. Default false: only the content
    of data: URLs is recognised. Restarts nothing."""


class Limits(APIModel):
    """What one proxy process takes on before it refuses."""

    body_size: Quantity | None = None
    """Largest request body, bytes; more is answered 413. Default 64Mi. Restarts nothing."""
    in_flight_size: Quantity | None = None
    """Sum of all request bodies held, bytes; more is answered 503 with Retry-After. Default 1Gi. Restarts nothing."""
    in_flight_requests: Annotated[int, Field(strict=True, ge=1, le=1_000_000)] | None = None
    """Most requests at once; more are answered 503 with Retry-After. Default 4096. Restarts nothing."""
    encode_queue: Annotated[int, Field(strict=True, ge=1, le=100_000)] | None = None
    """Most requests that wait for one encoder; more are answered 503. Default 256. Restarts nothing."""
    encode_timeout_seconds: Annotated[Seconds, Field(ge=1)] | None = None
    """How long one encoder request may take. Default 120 seconds. Restarts nothing."""
    first_byte_timeout_seconds: Annotated[Seconds, Field(ge=1)] | None = None
    """How long the head of a prefill or decode answer may take. Default 600 seconds. Restarts nothing."""
    idle_timeout_seconds: Annotated[Seconds, Field(ge=1)] | None = None
    """Longest pause within an answer. Default 300 seconds. Restarts nothing."""


class Proxy(APIModel):
    """The proxy's pods, its Service and its policies."""

    replicas: Count | None = None
    """Number of pods. Default 2. Restarts nothing."""
    image: ImageReference | None = None
    """Image of the proxy. Default: the operator's own release. Restarts the proxy."""
    image_pull_policy: ImagePullPolicy | None = None
    """Always, IfNotPresent or Never. Default: as Kubernetes decides by tag. Restarts the proxy."""
    resources: Resources | None = None
    """CPU and memory of one pod. Default: requests of 500m CPU and 2Gi
    memory, memory limit 2Gi. Restarts the proxy."""
    template: PodTemplate | None = None
    """Overlay on the proxy's pods. Restarts the proxy."""
    service: Service | None = None
    """The Service that clients use."""
    media_forwarding: MediaForwarding | None = None
    """Metadata (default): consumers of an encoded item get what the encoder reported, not the media. Raw: they get the
    media too, to compare and to diagnose. Restarts nothing."""
    media: Media | None = None
    """Which media requests may bring."""
    limits: Limits | None = None
    """What one proxy process takes on before it refuses."""
    api_keys_secret_ref: LocalObjectReference | None = None
    """Secret of which every entry is a key that clients may present; read again when it changes. Default: no key
    needed. Restarts the proxy when the name changes."""
