"""What users of such operators have met, by its number in docs/development/cases.md, and that it does not happen here.

Here are the cases that the pure core decides; the page says where the others are held.
"""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from epd_operator.api import names
from epd_operator.api.crd import custom_resource_definitions
from epd_operator.api.quantity import Quantity
from epd_operator.cli.findings import judge
from epd_operator.cli.reader import Document, read
from epd_operator.controller.admission import review
from epd_operator.engine.site import POD
from epd_operator.plan.settings import Settings
from tests.unit.manifests.specs import CLAIM, Object, container, deployment, one, planned, pod, rendered
from tests.unit.objects import findings

EXAMPLES = [
    path
    for path in sorted((Path(__file__).parents[3] / "examples").rglob("*.yaml"))
    if "kind: EPDDeployment" in path.read_text()
]
E_P_D: dict[str, Any] = {"encode": {}, "prefill": {}}
FILES: dict[str, Any] = {"transfer": {"embeddings": {"connector": "ECExampleConnector", "volume": CLAIM}}}
ROLES = ("encode", "prefill", "decode")


def everything() -> list[Object]:
    """All that can be rendered: three roles, the proxy, the pruner."""
    return rendered(**E_P_D, **FILES)


def pods(objects: list[Object]) -> dict[str, Object]:
    """The spec of every pod by the name of its owner."""
    found = {item["metadata"]["name"]: item["spec"]["template"] for item in objects if item["kind"] == "Deployment"}
    found |= {
        item["metadata"]["name"]: item["spec"]["jobTemplate"]["spec"]["template"]
        for item in objects
        if item["kind"] == "CronJob"
    }
    return {name: template["spec"] for name, template in found.items()}


def variables(objects: list[Object], role: str) -> dict[str, Object]:
    return {variable["name"]: variable for variable in container(objects, role)["env"]}


def volume(objects: list[Object], role: str, path: str) -> Object:
    """What is mounted at a path of a role's engine."""
    (mount,) = (mount for mount in container(objects, role)["volumeMounts"] if mount["mountPath"] == path)
    found: Object = next(item for item in pod(objects, role)["volumes"] if item["name"] == mount["name"])
    return found


def rules(*specs: str, name: str = "m") -> list[str]:
    return [finding.rule for finding in findings(*specs, name=name)]


def config(objects: list[Object], role: str, flag: str) -> Any:
    """A JSON flag of a role's engine; None where it has none."""
    words = container(objects, role)["args"]
    return json.loads(words[words.index(flag) + 1]) if flag in words else None


def test_o1_no_service_becomes_a_variable_of_vllm() -> None:
    assert [name for name, spec in pods(everything()).items() if spec["enableServiceLinks"] is not False] == []
    assert rules(name="vllm-a") == ["name-begins-with-vllm"]


@pytest.mark.parametrize("role", ROLES)
def test_o2_shared_memory_is_sized_for_what_uses_it(role: str) -> None:
    transfer = {"embeddings": {"connector": "ECExampleConnector", "volume": CLAIM, "cacheSize": "1Gi"}}
    sizes = [
        volume(rendered(**{**E_P_D, role: {"parallelism": {"tensor": degree}}}, transfer=transfer), role, "/dev/shm")
        for degree in (2, 8)
    ]
    assert [size["emptyDir"]["medium"] for size in sizes] == ["Memory", "Memory"]
    few, many = (Quantity(size["emptyDir"]["sizeLimit"]).bytes for size in sizes)
    assert (64 << 20) < few < many
    limited = f"{{prefill: {{}}, {role}: {{parallelism: {{tensor: 8}}, resources: {{limits: {{memory: 512Mi}}}}}}}}"
    files = "transfer: {embeddings: {connector: ECExampleConnector, volume: {persistentVolumeClaim: {claimName: a}}}}"
    assert rules(limited, files) == ["shared-memory-above-limit"]


@pytest.mark.parametrize("role", ROLES)
def test_o3_what_a_killed_engine_left_is_removed_before_the_next_start(role: str) -> None:
    script = container(everything(), role)["command"][2]
    first = script.partition("&&")[0]
    assert first.startswith("rm -rf ")
    assert [name for name in ("vllm_*", "psm_*", "sem.*") if f"/dev/shm/{name}" not in first] == []
    assert "ec-cpu-bytes-shared-memory" in rules(
        "transfer: {embeddings: {cacheSize: 8Gi}}", "encode: {sharedMemorySize: 4Gi}"
    )


def test_o4_ports_of_a_pod_are_disjoint() -> None:
    data = {"parallelism": {"data": 100}}
    objects = rendered(encode={}, prefill=data, decode=data)
    for role in ROLES:
        ports = [port["containerPort"] for port in container(objects, role)["ports"]]
        assert len(ports) == len(set(ports))
        assert POD.ports.http in ports
    assert set(rules("engine: {args: [--port=5600]}")) == {"args-clash-with-wiring"}
    assert set(rules("engine: {env: [{name: VLLM_EC_SIDE_CHANNEL_PORT, value: '5601'}]}")) == {"env-clash-with-wiring"}


def test_o5_side_channels_are_at_the_pods_address() -> None:
    objects = rendered(encode={}, decode={})
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    for role in ("encode", "decode"):
        assert variables(objects, role)["VLLM_EC_SIDE_CHANNEL_HOST"]["valueFrom"] == address
    objects = rendered(prefill={}, decode={})
    for role in ("prefill", "decode"):
        assert variables(objects, role)["VLLM_NIXL_SIDE_CHANNEL_HOST"]["valueFrom"] == address
    assert rules("{prefill: {}, decode: {env: [{name: VLLM_NIXL_SIDE_CHANNEL_HOST, value: localhost}]}}") == [
        "env-clash-with-wiring"
    ]


def test_o6_nothing_of_the_host_is_shared_unless_asked_for() -> None:
    shared = {"hostIPC", "hostPID", "hostNetwork"}
    assert [name for name, spec in pods(everything()).items() if shared & spec.keys()] == []
    asked = rendered(decode={"template": {"spec": {"hostIPC": True}}})
    assert pod(asked, "decode")["hostIPC"] is True


def test_o7_all_that_is_written_to_is_a_volume_and_nobody_is_root() -> None:
    for name, spec in pods(everything()).items():
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    objects = everything()
    for role in ROLES:
        mounts = [mount["mountPath"] for mount in container(objects, role)["volumeMounts"]]
        for variable in ("HOME", "HF_HOME", "VLLM_CACHE_ROOT", "TRITON_CACHE_DIR"):
            path = variables(objects, role)[variable]["value"]
            assert any(path.startswith(f"{mount}/") for mount in mounts), variable
        assert "/tmp" in mounts


def test_o8_a_slow_start_is_waited_for() -> None:
    found = container(rendered(decode={"startupTimeoutSeconds": 7200}), "decode")
    probe = found["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 7200
    assert found["livenessProbe"]["httpGet"]["path"] == "/health"


def test_o9_ready_means_that_it_can_serve() -> None:
    objects = everything()
    assert {container(objects, role)["readinessProbe"]["httpGet"]["path"] for role in ROLES} == {"/health"}
    assert container(objects, "proxy")["readinessProbe"]["httpGet"]["path"] == "/health"
    settings = yaml.safe_load(one(objects, "ConfigMap")["data"]["proxy.yaml"])
    assert settings["roles"] == list(ROLES)
    assert settings["servedNames"] == ["org/model"]


def test_o11_a_node_is_not_drained_of_a_whole_role() -> None:
    budgets = [item["spec"] for item in everything() if item["kind"] == "PodDisruptionBudget"]
    components = {budget["selector"]["matchLabels"][names.LABEL_COMPONENT] for budget in budgets}
    assert components == {*ROLES, "proxy"}
    assert {budget["maxUnavailable"] for budget in budgets} == {1}


def test_o13_one_revision_over_all_roles() -> None:
    objects = everything()
    found = {
        item["spec"]["selector"]["matchLabels"].get(names.LABEL_REVISION)
        for item in objects
        if item["kind"] == "Deployment" and not item["metadata"]["name"].endswith("proxy")
    }
    assert len(found) == 1
    for field in ({"engine": {"version": "0.32.0"}}, {"model": {"id": "org/model", "revision": "b"}}):
        assert planned(deployment(**{**E_P_D, **field})).revision != planned(deployment(**E_P_D)).revision


@pytest.mark.parametrize("role", ROLES)
def test_o14_requests_end_before_the_engine_does(role: str) -> None:
    objects = rendered("a", **{key: {"drainTimeoutSeconds": 300} for key in ROLES})
    found = container(objects, role)
    stop = found["lifecycle"]["preStop"]["sleep"]["seconds"]
    words = found["args"]
    shutdown = int(words[words.index("--shutdown-timeout") + 1])
    assert (stop >= 10, shutdown) == (True, 300)
    assert pod(objects, role)["terminationGracePeriodSeconds"] > stop + shutdown


def test_o15_no_surge_pod_waits_for_a_device_that_an_old_one_holds() -> None:
    objects = everything()
    for role in ROLES:
        bounds = one(objects, "Deployment", role)["spec"]["strategy"]["rollingUpdate"]
        assert (bounds["maxSurge"], bounds["maxUnavailable"]) == (0, 1)


def test_o18_both_sides_of_the_kv_transfer_come_from_one_field() -> None:
    objects = rendered(prefill={}, transfer={"kv": {"connector": "MooncakeConnector"}})
    sides = {role: config(objects, role, "--kv-transfer-config") for role in ("prefill", "decode")}
    assert {side["kv_connector"] for side in sides.values()} == {"MooncakeConnector"}
    assert [side["kv_role"] for side in sides.values()] == ["kv_producer", "kv_consumer"]
    assert set(rules("prefill: {args: ['--kv-transfer-config={}']}")) == {"args-clash-with-wiring"}


def test_o19_embeddings_are_configured_where_they_are_made_and_read() -> None:
    objects = rendered(**E_P_D, **FILES)
    sides = {role: config(objects, role, "--ec-transfer-config") for role in ROLES}
    assert sides["encode"]["ec_role"] == "ec_producer"
    assert sides["prefill"]["ec_role"] == "ec_consumer"
    assert sides["decode"] is None


def test_o21_bodies_of_images_fit() -> None:
    assert rules("proxy: {limits: {bodySize: 256Mi}}") == []
    settings = yaml.safe_load(one(rendered(proxy={"limits": {"bodySize": "256Mi"}}), "ConfigMap")["data"]["proxy.yaml"])
    assert settings["limits"]["bodySize"] == 256 << 20


def test_o22_media_urls_are_held_to_the_policy_by_every_engine() -> None:
    objects = rendered(**E_P_D)
    allowed = rendered(**E_P_D, proxy={"media": {"allowedDomains": ["images.example.com"]}})
    for role in ROLES:
        words = container(objects, role)["args"]
        assert words[words.index("--allowed-media-domains") + 1].endswith(".invalid")
        assert variables(objects, role)["VLLM_MEDIA_URL_ALLOW_REDIRECTS"]["value"] == "0"
        assert "images.example.com" in container(allowed, role)["args"]
    assert [item["metadata"]["name"] for item in objects if item["kind"] == "NetworkPolicy"] == ["a-engines", "a-proxy"]


def test_o23_a_flag_that_the_release_lacks_is_refused() -> None:
    assert rules("engine: {args: [--enable-metrics]}") == ["args-unknown"]
    later = "{encode: <absent>, engine: {version: 0.28.0, args: [--max-num-queued-reqs=5]}}"
    assert rules(later) == ["args-unknown"]


def test_o24_settings_that_would_be_ignored_are_told() -> None:
    assert rules("transfer: {embeddings: {extraConfig: {num_ec_blocks: 5}}}") == ["extra-config-key-unknown"]
    assert rules("transfer: {embeddings: {connector: ECNoSuchConnector}}") == ["embeddings-connector-unknown"]


def test_o25_more_ranks_in_prefill_than_heads_are_refused_where_the_model_is_known() -> None:
    known = {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "model_type": "qwen3_vl",
        "text_config": {"num_attention_heads": 32, "num_key_value_heads": 8},
    }
    spec = "{encode: <absent>, prefill: {parallelism: {tensor: 16}}, decode: {parallelism: {tensor: 8}}}"
    assert [finding.rule for finding in findings(spec, config=known)] == ["prefill-tensor-above-kv-heads"]


def test_o26_devices_follow_from_parallelism() -> None:
    role = {"parallelism": {"tensor": 2, "data": 3}}
    assert container(rendered(decode=role), "decode")["resources"]["limits"]["nvidia.com/gpu"] == "6"
    assert rules("decode: {resources: {limits: {nvidia.com/gpu: 2}}}") == ["device-resource-twice"]


def test_o27_a_known_bad_release_is_told() -> None:
    known = "engine: {version: 0.30.0, args: ['--compilation-config={\"cudagraph_mm_encoder\": true}']}"
    assert rules(known) == ["encoder-graph-wrong-output"]


def test_o29_every_container_that_downloads_has_the_token_and_no_value_is_written_out() -> None:
    token = {"id": "org/model", "tokenSecretRef": {"name": "hf", "key": "token"}}
    objects = rendered(model=token, **E_P_D)
    for role in ROLES:
        assert variables(objects, role)["HF_TOKEN"]["valueFrom"] == {"secretKeyRef": {"name": "hf", "key": "token"}}
    assert [name for name, spec in pods(objects).items() if spec.get("initContainers")] == []


def test_o30_pull_secrets_are_in_every_pod() -> None:
    objects = rendered(
        **E_P_D, **FILES, engine={"version": "0.33.0", "imagePullSecrets": [{"name": "a"}, {"name": "b"}]}
    )
    assert [spec["imagePullSecrets"] for spec in pods(objects).values()] == [[{"name": "a"}, {"name": "b"}]] * 5


def test_o32_models_never_become_names_and_the_longest_name_is_checked() -> None:
    shown = []
    for model in ("Org/Model_3.5-VL:x", "9.Other/" + "a" * 300):
        revision = planned(deployment(model={"id": model})).revision
        metadata = [[i["metadata"]["name"], i["metadata"]["labels"]] for i in rendered(model={"id": model})]
        shown.append(json.dumps(metadata).replace(revision, ""))
    assert shown[0] == shown[1]
    assert rules(name="a" * (names.MAX_NAME + 1)) == ["name-too-long"]
    longest = [item["metadata"]["name"] for item in rendered("a" * names.MAX_NAME, **E_P_D)]
    assert max(map(len, longest)) == names.MAX_LABEL
    assert rules(name="1a") == rules(name="a.b") == ["name-not-a-label"]


def test_o33_selectors_hold_what_never_changes() -> None:
    labelled = {"template": {"metadata": {"labels": {"team": "a", "version": "2"}}}}
    before, after = (
        [item["spec"]["selector"] for item in objects if item["kind"] == "Deployment"]
        for objects in (rendered(encode={}), rendered(encode=labelled, decode=labelled, proxy=labelled))
    )
    assert before == after
    assert "template-clash-with-wiring" in rules(
        f"decode: {{template: {{metadata: {{labels: {{{names.LABEL_INSTANCE}: x}}}}}}}}"
    )


def test_o34_the_definition_is_small() -> None:
    assert max(len(json.dumps(definition)) for definition in custom_resource_definitions()) < 100_000


def test_o40_each_role_is_a_target_of_its_own() -> None:
    external = {"scaling": {"mode": "External"}}
    scales = [i for i in rendered(encode=external, prefill=external, decode=external) if i["kind"] == "EPDRoleScale"]
    assert [item["spec"]["role"] for item in scales] == list(ROLES)
    assert rules("decode: {replicas: 2, scaling: {mode: External}}") == ["replicas-or-scaling"]


def test_o44_nothing_waits_for_the_operator_when_it_goes() -> None:
    assert [item["metadata"]["name"] for item in everything() if "finalizers" in item["metadata"]] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_o50_the_webhook_takes_every_example_and_says_what_validate_says(path: Path) -> None:
    for document in read(str(path)):
        assert review(document.content, None, Settings()) == ([], [])
        spec = document.content["spec"]
        broken = {**document.content, "spec": {**spec, "decode": {**spec["decode"], "args": ["--port=1"]}}}
        said = [str(finding) for finding in judge(Document("file", 0, broken)).findings]
        assert len(said) == 1
        assert review(broken, None, Settings()) == (said, [])
        assert review(broken, broken, Settings()) == ([], [])
