from typing import Any

import yaml
from hypothesis import given

from epd_operator.engine.rules import proxy as proxy_rules
from epd_proxy.config import MediaForwarding, ProxyConfig, Role
from tests.unit.manifests.specs import Object, deployment, one, planned, pod, rendered, served_names


def configuration(objects: list[Object]) -> ProxyConfig:
    """The configuration as the proxy reads it."""
    return ProxyConfig.model_validate(yaml.safe_load(one(objects, "ConfigMap")["data"]["proxy.yaml"]))


@given(served_names)
def test_the_proxy_reads_the_name_as_it_was_written(name: str) -> None:
    assert configuration(rendered(model={"id": "org/model", "servedName": name})).served_names == (name,)


def test_the_configuration_says_what_the_object_says() -> None:
    proxy: dict[str, Any] = {
        "mediaForwarding": "Raw",
        "media": {"allowedDomains": ["example.com"], "maxSize": "1Mi", "maxItems": 2, "urlsImmutable": True},
        "limits": {"bodySize": "2Mi", "encodeTimeoutSeconds": 7, "idleTimeoutSeconds": 8},
        "apiKeysSecretRef": {"name": "keys"},
    }
    found = configuration(rendered(encode={}, proxy=proxy, decode={"drainTimeoutSeconds": 33}))
    assert found.roles == (Role.ENCODE, Role.DECODE)
    assert found.media_forwarding is MediaForwarding.RAW
    assert found.media.model_dump(include={"allowed_domains", "max_size", "max_items", "urls_immutable"}) == {
        "allowed_domains": ("example.com",),
        "max_size": 1 << 20,
        "max_items": 2,
        "urls_immutable": True,
    }
    assert found.limits.body_size == 2 << 20
    assert (found.timeouts.encode_seconds, found.timeouts.idle_seconds) == (7, 8)
    assert found.timeouts.engine_keep_alive_seconds == 120
    assert found.drain.timeout_seconds == 33
    assert found.discovery is not None
    assert (found.discovery.namespace, found.discovery.instance) == ("ns", "a")


def test_every_file_that_the_configuration_names_is_mounted() -> None:
    objects = rendered(proxy={"apiKeysSecretRef": {"name": "keys"}})
    spec = pod(objects, "proxy")
    container = spec["containers"][0]
    secrets = configuration(objects).secrets
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert secrets.api_keys_directory is not None
    assert volumes[mounts[secrets.api_keys_directory]]["secret"]["secretName"] == "keys"
    sources = volumes[mounts["/etc/epd/keys"]]["projected"]["sources"]
    paths = {f"/etc/epd/keys/{item['path']}": s["secret"]["name"] for s in sources for item in s["secret"]["items"]}
    assert paths == {secrets.uuid_key_file: "a-uuid-key", secrets.engine_key_file: "a-engine-key"}
    assert {item["key"] for s in sources for item in s["secret"]["items"]} == {"key"}
    assert container["args"] == ["--config", "/etc/epd/config/proxy.yaml"]
    assert volumes[mounts["/etc/epd/config"]]["configMap"] == {"name": "a-proxy"}
    assert not any("subPath" in mount for mount in container["volumeMounts"])  # such files would never be renewed


def test_without_api_keys_none_are_asked_for() -> None:
    objects = rendered()
    assert configuration(objects).secrets.api_keys_directory is None
    assert {volume["name"] for volume in pod(objects, "proxy")["volumes"]} == {"config", "keys", "tmp"}


def test_the_port_of_the_configuration_is_the_pods() -> None:
    objects = rendered(proxy={"service": {"port": 80, "type": "LoadBalancer", "annotations": {"a": "b"}}})
    service = one(objects, "Service", "proxy")
    ports = pod(objects, "proxy")["containers"][0]["ports"]
    assert ports == [{"name": "http", "protocol": "TCP", "containerPort": configuration(objects).listen.port}]
    assert service["spec"]["ports"] == [{"name": "http", "protocol": "TCP", "port": 80, "targetPort": "http"}]
    assert (service["spec"]["type"], service["metadata"]["annotations"]) == ("LoadBalancer", {"a": "b"})


def test_the_pod_outlives_its_drain() -> None:
    objects = rendered(decode={"drainTimeoutSeconds": 33})
    spec = pod(objects, "proxy")
    sleep = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert spec["terminationGracePeriodSeconds"] > sleep + configuration(objects).drain.timeout_seconds


def test_the_proxy_reads_endpoints_as_itself() -> None:
    objects = rendered()
    spec = pod(objects, "proxy")
    binding = one(objects, "RoleBinding")
    assert spec["serviceAccountName"] == one(objects, "ServiceAccount")["metadata"]["name"]
    assert spec["automountServiceAccountToken"] is True
    assert binding["roleRef"]["name"] == planned(deployment()).proxy.cluster_role
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "a-proxy", "namespace": "ns"}]


def test_settings_restart_no_proxy() -> None:
    before, after = rendered(), rendered(proxy={"mediaForwarding": "Raw", "limits": {"bodySize": "99Mi"}})
    assert one(before, "ConfigMap") != one(after, "ConfigMap")
    assert one(before, "Deployment", "proxy") == one(after, "Deployment", "proxy")


def test_the_rules_about_sizes_know_the_proxys_defaults() -> None:
    defaults = ProxyConfig()
    sizes = dict(proxy_rules.SIZES)
    assert sizes["media.maxSize"].bytes == defaults.media.max_size
    assert sizes["limits.bodySize"].bytes == defaults.limits.body_size
    assert sizes["limits.inFlightSize"].bytes == defaults.limits.in_flight_size
