"""The plan of the proxy, and of the pruner that shares its image."""

from typing import Any

from epd_operator.api import names
from epd_operator.api.pod import Resources
from epd_operator.api.proxy import Proxy, Service, ServiceType
from epd_operator.api.quantity import Quantity
from epd_operator.api.role import Role
from epd_operator.engine import connectors
from epd_operator.engine.command import served_name
from epd_operator.engine.drain import DEFAULT_DRAIN
from epd_operator.engine.environment import KEEP_ALIVE_SECONDS
from epd_operator.engine.memory import cache_size_of
from epd_operator.engine.site import POD
from epd_operator.engine.wiring import Wiring
from epd_operator.plan.plan import ProxyPlan, PrunerPlan
from epd_operator.plan.roles import MANAGER, selector_of
from epd_operator.plan.settings import Settings
from epd_operator.plan.storage import embeddings_volume

DEFAULT_REPLICAS = 2
DEFAULT_PORT = 8000
DEFAULT_RESOURCES = Resources(
    requests={"cpu": Quantity("500m"), "memory": Quantity("2Gi")}, limits={"memory": Quantity("2Gi")}
)
PRUNE_AFTER_SECONDS = 48 * 3600
"""A file that was read or written within two days stays. Reads within 24 hours may leave no trace (relatime), and a
file must not go while an encoder that saw it has told a consumer to read it."""


def proxy_plan(wiring: Wiring, settings: Settings, *, suspended: bool) -> ProxyPlan:
    """Plan the proxy."""
    spec = wiring.deployment.spec
    proxy = spec.proxy or Proxy()
    service = proxy.service or Service()
    name = wiring.deployment.name
    selector = selector_of(name, names.PROXY)
    decode = spec.decode.drain_timeout_seconds if spec.decode else None
    replicas = DEFAULT_REPLICAS if proxy.replicas is None else proxy.replicas
    return ProxyPlan(
        name=names.proxy_name(name),
        replicas=0 if suspended else replicas,
        cluster_role=settings.proxy_cluster_role,
        image=proxy.image or settings.proxy_image,
        image_pull_policy=proxy.image_pull_policy,
        image_pull_secrets=tuple(secret.name for secret in spec.engine.image_pull_secrets or ()),
        served_name=served_name(wiring),
        roles=tuple(wiring.instances),
        service_type=service.type or ServiceType.CLUSTER_IP,
        port=service.port or DEFAULT_PORT,
        service_annotations=service.annotations or {},
        settings=proxy_settings(proxy),
        drain_seconds=max(1, decode if decode is not None else DEFAULT_DRAIN[Role.DECODE]),
        keep_alive_seconds=KEEP_ALIVE_SECONDS,
        api_keys_secret=proxy.api_keys_secret_ref.name if proxy.api_keys_secret_ref else None,
        resources=proxy.resources or DEFAULT_RESOURCES,
        overlay=proxy.template,
        selector=selector,
        labels=selector | {names.LABEL_NAME: "epd", names.LABEL_MANAGED_BY: MANAGER},
    )


def proxy_settings(proxy: Proxy) -> dict[str, Any]:
    """What the user wrote, in the shape of the proxy's configuration document."""
    settings: dict[str, Any] = {}
    if proxy.media_forwarding is not None:
        settings["mediaForwarding"] = str(proxy.media_forwarding)
    if proxy.media is not None:
        settings["media"] = _written(
            allowedDomains=proxy.media.allowed_domains,
            maxSize=proxy.media.max_size and proxy.media.max_size.bytes,
            maxItems=proxy.media.max_items,
            urlsImmutable=proxy.media.urls_immutable,
        )
    if proxy.limits is not None:
        limits = proxy.limits
        settings["limits"] = _written(
            bodySize=limits.body_size and limits.body_size.bytes,
            inFlightSize=limits.in_flight_size and limits.in_flight_size.bytes,
            inFlightRequests=limits.in_flight_requests,
            encoderQueue=limits.encode_queue,
        )
        settings["timeouts"] = _written(
            encodeSeconds=limits.encode_timeout_seconds,
            prefillSeconds=limits.first_byte_timeout_seconds,
            firstByteSeconds=limits.first_byte_timeout_seconds,
            idleSeconds=limits.idle_timeout_seconds,
        )
    return settings


def _written(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def pruner_plan(wiring: Wiring, settings: Settings) -> PrunerPlan | None:
    """Plan the pruner; None where no shared embeddings directory is used."""
    volume = embeddings_volume(wiring)
    if volume is None or wiring.embeddings is None or wiring.embeddings.connector != connectors.EC_EXAMPLE:
        return None
    spec = wiring.deployment.spec
    proxy = spec.proxy or Proxy()
    name = wiring.deployment.name
    cache_size = cache_size_of(wiring)
    labels = selector_of(name, "pruner") | {names.LABEL_NAME: "epd", names.LABEL_MANAGED_BY: MANAGER}
    return PrunerPlan(
        name=names.pruner_name(name),
        image=proxy.image or settings.proxy_image,
        image_pull_policy=proxy.image_pull_policy,
        image_pull_secrets=tuple(secret.name for secret in spec.engine.image_pull_secrets or ()),
        claim=volume.persistent_volume_claim.claim_name,
        directory=POD.embeddings_directory,
        older_than_seconds=PRUNE_AFTER_SECONDS,
        keep_bytes=cache_size.bytes if cache_size else None,
        labels=labels,
    )
