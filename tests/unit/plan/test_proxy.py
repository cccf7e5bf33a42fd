"""The plan of the proxy, and of the pruner."""

import pytest

from epd_operator.api.proxy import ServiceType
from epd_operator.api.role import Role
from epd_operator.plan.build import build
from epd_operator.plan.plan import ProxyPlan, PrunerPlan
from epd_operator.plan.settings import Settings
from epd_proxy.config import ProxyConfig
from tests.unit.objects import deployment

FILES = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}"


def proxy(spec: str = "") -> ProxyPlan:
    return build(deployment(spec)).proxy


def pruner(spec: str) -> PrunerPlan | None:
    return build(deployment(spec), settings=Settings(proxy_image="p:1")).pruner


def test_defaults() -> None:
    plan = proxy()
    assert (plan.name, plan.replicas, plan.port, plan.service_type) == ("m-proxy", 2, 8000, ServiceType.CLUSTER_IP)
    assert plan.served_name == "Qwen/Qwen3-VL-8B-Instruct"
    assert plan.roles == (Role.ENCODE, Role.DECODE)
    assert plan.settings == {}
    assert plan.api_keys_secret is None
    assert plan.resources.limits is not None


def test_the_image_is_the_users_or_the_operators() -> None:
    settings = Settings(proxy_image="registry/proxy:1")
    assert build(deployment(), settings=settings).proxy.image == "registry/proxy:1"
    assert build(deployment("proxy: {image: mine}"), settings=settings).proxy.image == "mine"


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        ("proxy: {mediaForwarding: Raw}", {"mediaForwarding": "Raw"}),
        (
            "proxy: {media: {allowedDomains: [a.example], maxSize: 16Mi, maxItems: 3, urlsImmutable: true}}",
            {"media": {"allowedDomains": ["a.example"], "maxSize": 16 << 20, "maxItems": 3, "urlsImmutable": True}},
        ),
        (
            "proxy: {media: {maxSize: 1M}, limits: {bodySize: 1M, inFlightRequests: 9, encodeQueue: 8}}",
            {
                "media": {"maxSize": 10**6},
                "limits": {"bodySize": 10**6, "inFlightRequests": 9, "encoderQueue": 8},
                "timeouts": {},
            },
        ),
        (
            "proxy: {limits: {encodeTimeoutSeconds: 1, firstByteTimeoutSeconds: 2, idleTimeoutSeconds: 3}}",
            {
                "limits": {},
                "timeouts": {"encodeSeconds": 1, "prefillSeconds": 2, "firstByteSeconds": 2, "idleSeconds": 3},
            },
        ),
    ],
)
def test_settings_are_what_the_proxy_reads(spec: str, settings: dict[str, object]) -> None:
    plan = proxy(spec)
    assert plan.settings == settings
    ProxyConfig.model_validate(plan.settings)


@pytest.mark.parametrize(
    "sizes", ["media: {maxSize: 1}", "media: {maxSize: 1}, limits: {bodySize: 1}", "limits: {inFlightSize: 1e30}"]
)
def test_an_accepted_size_is_one_that_the_proxy_accepts(sizes: str) -> None:
    ProxyConfig.model_validate(proxy(f"proxy: {{{sizes}}}").settings)


def test_it_drains_as_long_as_decode() -> None:
    assert proxy("decode: {drainTimeoutSeconds: 77}").drain_seconds == 77
    assert proxy("decode: {drainTimeoutSeconds: 0}").drain_seconds == 1


def test_no_directory_no_pruner() -> None:
    assert pruner("") is None


def test_the_pruner_of_a_shared_directory() -> None:
    plan = pruner(f"{FILES}, cacheSize: 1Gi}}}}")
    assert plan is not None
    assert (plan.name, plan.image, plan.claim, plan.keep_bytes) == ("m-prune", "p:1", "a", 1 << 30)
    unbounded = pruner(f"{FILES}}}}}")
    assert unbounded is not None
    assert unbounded.keep_bytes is None
    assert unbounded.older_than_seconds > 24 * 3600
