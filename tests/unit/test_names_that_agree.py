"""Names that several programs must spell alike: each is held here once, whoever uses it.

The programs find each other by nothing else: the proxy by labels of EndpointSlices, pods by Secrets, users by words.
"""

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from epd_operator.api import names
from epd_operator.api.conditions import ConditionType, Reason
from epd_operator.api.crd import custom_resource_definitions
from epd_operator.api.finding import Finding, Severity
from epd_operator.cli.main import cli
from epd_operator.engine.capabilities import known_minors
from epd_operator.engine.release import OLDEST
from epd_operator.engine.site import Ports
from epd_operator.local import launch
from epd_proxy import discovery
from epd_proxy.config import ProxyConfig
from epd_proxy.endpoints import MOONCAKE_BOOTSTRAP_PORT, MOONCAKE_PUSH_PORT
from epd_proxy.options import parser
from epd_proxy.wire import WIRES
from tests.unit.manifests.specs import CLAIM, Object, container, one, pod, rendered
from tests.unit.objects import document, findings, wiring

ROOT = Path(__file__).parents[2]
ROLES = ("encode", "prefill", "decode")
FILES: dict[str, Any] = {"embeddings": {"connector": "ECExampleConnector", "volume": CLAIM}}
INSTANCE = "app.kubernetes.io/instance"
COMPONENT = "app.kubernetes.io/component"


def everything(**proxy: Any) -> list[Object]:
    return rendered("vision", encode={}, prefill={}, transfer=FILES, proxy=proxy)


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [item for item in objects if item["kind"] == kind]


def run(*words: str, stdin: str | bytes = "") -> tuple[int, str]:
    result = CliRunner().invoke(cli, list(words), input=stdin)
    return result.exit_code, result.stdout


def test_labels_on_all_children() -> None:
    for item in everything():
        labels = item["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "epd"
        assert labels["app.kubernetes.io/managed-by"] == "epd-operator"
        assert labels[INSTANCE] == "vision"
        assert labels.get(COMPONENT) in (*ROLES, "proxy", "pruner", None)
        assert item["kind"] != "Deployment" or COMPONENT in labels
        assert ("epd.dev/revision" in labels) is (labels.get(COMPONENT) in ROLES)


def test_labels_that_endpointslices_inherit_and_the_proxy_reads() -> None:
    source = (ROOT / "proxy/epd_proxy/members.py").read_text() + (ROOT / "proxy/epd_proxy/kube.py").read_text()
    source += (ROOT / "proxy/epd_proxy/discovery.py").read_text()
    for item in of_kind(everything(), "Service"):
        labels = item["metadata"]["labels"]
        if labels[COMPONENT] == "proxy":
            continue
        assert labels["epd.dev/role"] == labels[COMPONENT]
        assert labels["epd.dev/engine-version"] == "0.33.0"
        assert labels["epd.dev/embeddings-connector"] == "ECExampleConnector"
        assert labels["epd.dev/kv-connector"] == "NixlConnector"
    for label in ("role", "engine-version", "embeddings-connector", "kv-connector", "revision"):
        assert f"epd.dev/{label}" in source
    assert INSTANCE in source
    assert (names.LABEL_TRAFFIC, names.NO_TRAFFIC) == (discovery.LABEL_TRAFFIC, discovery.NO_TRAFFIC)


def test_selectors() -> None:
    for item in of_kind(everything(), "Deployment"):
        labels = item["spec"]["selector"]["matchLabels"]
        revision = {"epd.dev/revision"} if labels[COMPONENT] != "proxy" else set()
        assert labels.keys() == {INSTANCE, COMPONENT} | revision


def test_the_template_hash_is_an_annotation() -> None:
    for role in ROLES:
        template = one(everything(), "Deployment", role)["spec"]["template"]
        assert template["metadata"]["annotations"]["epd.dev/template-hash"]


def test_the_proxys_configuration() -> None:
    (text,) = one(everything(apiKeysSecretRef={"name": "keys"}), "ConfigMap")["data"].values()
    said = yaml.safe_load(text)
    read = ProxyConfig.model_validate(said)
    assert said["apiVersion"] == "proxy.epd.dev/v1alpha1"
    assert read.discovery is not None
    assert read.discovery.instance == "vision"
    assert "0.33" not in text, "releases and endpoints come from EndpointSlices"


def test_wires_are_there_for_every_release_and_older_ones() -> None:
    minors = [f"{major}.{minor}" for major, minor in known_minors()]
    assert minors[0] == OLDEST.minor_text == "0.28"
    assert list(WIRES) == ["0.24", "0.25", "0.26", "0.27", *minors]


def test_flags_of_the_static_proxy() -> None:
    flags = {option for action in parser()._actions for option in action.option_strings}
    connectors = {"--embeddings-connector", "--kv-connector"}
    files = {"--api-keys-file", "--engine-key-file", "--uuid-key-file"}
    assert flags >= {"--port", "--encode", "--prefill", "--decode", "--config"} | connectors | files


def test_secrets_that_the_operator_makes() -> None:
    assert names.uuid_key_secret("vision") == "vision-uuid-key"
    assert names.engine_key_secret("vision") == "vision-engine-key"
    assert names.SECRET_KEY == "key"
    objects = everything()
    for role in ROLES:
        (key,) = (v for v in container(objects, role)["env"] if v["name"] == "VLLM_API_KEY")
        assert key["valueFrom"] == {"secretKeyRef": {"name": "vision-engine-key", "key": "key"}}
    (mounted,) = (v["projected"]["sources"] for v in pod(objects, "proxy")["volumes"] if "projected" in v)
    assert [(s["secret"]["name"], s["secret"]["items"][0]["key"]) for s in mounted] == [
        ("vision-uuid-key", "key"),
        ("vision-engine-key", "key"),
    ]
    assert of_kind(objects, "Secret") == []


def test_the_secret_with_clients_keys_is_mounted_whole() -> None:
    volumes = pod(everything(apiKeysSecretRef={"name": "keys"}), "proxy")["volumes"]
    (secret,) = (volume["secret"] for volume in volumes if "secret" in volume)
    assert secret["secretName"] == "keys"
    assert "items" not in secret


def test_engines_are_probed_without_a_key() -> None:
    for role in ROLES:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container(everything(), role)[probe]["httpGet"] == {"path": "/health", "port": "http"}


@pytest.mark.parametrize(
    ("model", "argument"),
    [
        ("/a/b", "/models/a/b"),
        ("./a", "/models/a"),
        ("org/model", "org/model"),
    ],
)
def test_where_a_model_is(model: str, argument: str) -> None:
    objects = rendered(model={"id": model, "volume": CLAIM})
    assert container(objects, "decode")["args"][0] == argument
    (mount,) = (m for m in container(objects, "decode")["volumeMounts"] if m["name"] == "models")
    assert mount["mountPath"] == "/models"


def test_the_tiny_model_of_the_examples() -> None:
    for name in ("quickstart", "e-p-d"):
        model = yaml.safe_load((ROOT / "examples" / f"{name}.yaml").read_text())["spec"]["model"]
        assert model["id"] == "./tiny-qwen2-vl"
        assert "claimName" in model["volume"]["persistentVolumeClaim"]


def test_options_of_run() -> None:
    assert {"--models", "--vllm", "--port", "--output"} <= set(run("run", "--help")[1].replace(",", " ").split())
    assert "EPD_VLLM" in inspect.getsource(launch) + (ROOT / "operator/epd_operator/local/vllm.py").read_text()


@pytest.mark.parametrize(
    ("spec", "local", "connector"),
    [
        ("transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}", False, "ECExampleConnector"),
        ("", True, "ECExampleConnector"),
        ("device: {type: CPU}", False, "ECExampleConnector"),
        ("", False, "ECCPUConnector"),
        ("engine: {version: 0.30.0}", False, "ECCPUConnector"),
        ("engine: {version: 0.29.0}", False, "ECExampleConnector"),
    ],
)
def test_default_embeddings_connector(spec: str, local: bool, connector: str) -> None:
    found = wiring(spec, local=local).embeddings
    assert found is not None
    assert found.connector == connector
    assert connector in (ROOT / "docs" / "connectors.md").read_text()


def test_where_no_default_will_do_a_claim_is_asked_for() -> None:
    assert [f.rule for f in findings("engine: {version: 0.29.0}")] == ["shared-directory-without-claim"]


def test_the_cache_size_is_that_of_the_connector_too() -> None:
    objects = rendered(encode={}, transfer={"embeddings": {"connector": "ECCPUConnector", "cacheSize": "6Gi"}})
    words = container(objects, "encode")["args"]
    config = json.loads(words[words.index("--ec-transfer-config") + 1])
    assert config["ec_connector_extra_config"]["ec_cpu_bytes"] == 6 << 30


def test_preprocessing_has_one_schema_and_is_refused_off_the_encoder() -> None:
    spec = custom_resource_definitions()[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    schemas = [spec["properties"][role]["properties"]["preprocessing"] for role in ROLES]
    assert schemas[0] == schemas[1] == schemas[2]
    assert [f.rule for f in findings("decode: {preprocessing: {device: CPU}}")] == ["preprocessing-off-encoder"]


def test_findings_as_json() -> None:
    code, out = run("validate", "-o", "json", "-", stdin=json.dumps(document("decode: {args: [--port=1]}")))
    (finding,) = json.loads(out)
    keys = ["rule", "severity", "path", "value", "message", "remedy", "release", "file", "document", "name"]
    assert (code, list(finding)) == (1, keys)
    assert (finding["file"], finding["document"], finding["name"]) == ("-", 0, "m")
    assert Finding("a", Severity.ERROR, "b", 1, "c", "d").as_json().keys() <= finding.keys()


def test_explain_as_json() -> None:
    code, out = run("explain", "-o", "json", "-", stdin=json.dumps(document()))
    (told,) = json.loads(out)
    assert code == 0
    assert told["roles"][0]["env"]["POD_IP"] == "$(status.podIP)"
    assert told["roles"][0]["argv"][0] == "Qwen/Qwen3-VL-8B-Instruct"
    wanted = {"name", "replicas", "image", "argv", "env", "sharedMemoryBytes", "preprocessingDevice"}
    assert all(role.keys() >= wanted for role in told["roles"])


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (json.dumps(document()), 0),
        (json.dumps(document("encode: {replicas: 0}")), 0),
        (json.dumps(document("a: 1")), 1),
        (json.dumps(document("decode: {replicas: a}")), 1),
        (json.dumps(document("decode: {args: [--port=1]}")), 1),
        (json.dumps(document() | {"kind": "Pod"}), 2),
        ("", 2),
        (b"\x7fELF\x00", 2),
        ("a: [", 2),
    ],
)
def test_exit_codes(content: str | bytes, code: int) -> None:
    for command in ("validate", "explain", "render"):
        assert run(command, "-", stdin=content)[0] == code


def test_columns() -> None:
    version = custom_resource_definitions()[0]["spec"]["versions"][0]
    shown = {c["name"]: c["jsonPath"] for c in version["additionalPrinterColumns"] if not c.get("priority")}
    assert list(shown) == ["Topology", "Ready", "Encode", "Prefill", "Decode", "Reason", "Age"]
    assert {shown[role.title()] for role in ROLES} == {f".status.roles.{role}.summary" for role in ROLES}
    assert custom_resource_definitions()[0]["spec"]["names"]["shortNames"] == ["epd"]


def test_suspend() -> None:
    awake, asleep = (rendered(encode={}, suspend=suspend) for suspend in (False, True))
    assert {item["spec"]["replicas"] for item in of_kind(asleep, "Deployment")} == {0}
    assert [i["metadata"]["name"] for i in awake] == [i["metadata"]["name"] for i in asleep]


def test_only_data_urls_by_default() -> None:
    proxies: list[dict[str, Any]] = [{}, {"media": {"allowedDomains": []}}]
    for proxy in proxies:
        (text,) = one(everything(**proxy), "ConfigMap")["data"].values()
        assert ProxyConfig.model_validate(yaml.safe_load(text)).media.allowed_domains == ()


def test_reasons_are_of_one_module_and_documented() -> None:
    page = (ROOT / "docs" / "conditions.md").read_text()
    assert [word for word in (*ConditionType, *Reason) if f"`{word}`" not in page] == []


FIELDS = """
model.id model.revision model.architecture model.servedName model.tokenSecretRef.name model.tokenSecretRef.key
model.volume.persistentVolumeClaim model.volume.hostPath model.volume.emptyDir model.volume.image
engine.version engine.image engine.imagePullPolicy engine.imagePullSecrets engine.args engine.env
device.type device.resourceName device.product device.runtimeClassName
ROLE.replicas ROLE.scaling.mode ROLE.device.type ROLE.preprocessing.device ROLE.preprocessing.tensorIPC
ROLE.parallelism.tensor ROLE.parallelism.pipeline ROLE.parallelism.data ROLE.sharedMemorySize ROLE.args ROLE.env
ROLE.resources ROLE.startupTimeoutSeconds ROLE.drainTimeoutSeconds ROLE.template.metadata ROLE.template.spec
transfer.embeddings.connector transfer.embeddings.volume.persistentVolumeClaim transfer.embeddings.cacheSize
transfer.embeddings.extraConfig transfer.kv.connector transfer.kv.extraConfig
proxy.replicas proxy.resources proxy.template proxy.service.type proxy.service.port proxy.service.annotations
proxy.mediaForwarding proxy.media.allowedDomains proxy.media.maxSize proxy.media.maxItems
proxy.limits.bodySize proxy.limits.inFlightSize proxy.apiKeysSecretRef
rollout.strategy rollout.maxSurge rollout.maxUnavailable rollout.progressDeadlineSeconds rollout.paused
rollout.historyLimit preflight suspend operatorClass
"""
"""The fields of an EPDDeployment's spec. The API grows by addition: what is here stays."""
ENUMS = {
    "device.type": ["CUDA", "ROCm", "XPU", "CPU"],
    "encode.scaling.mode": ["External"],
    "encode.preprocessing.device": ["Auto", "CPU", "Accelerator"],
    "encode.preprocessing.tensorIPC": ["torch_shm", "direct_rpc"],
    "proxy.mediaForwarding": ["Metadata", "Raw"],
    "rollout.strategy": ["Proportional", "Recreate", "BlueGreen"],
    "preflight": ["Warn", "Enforce"],
}


def places(schema: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for name, inner in schema.get("properties", {}).items():
        yield f"{prefix}{name}", inner
        yield from places(inner, f"{prefix}{name}.")


def test_fields_of_the_spec() -> None:
    schema = custom_resource_definitions()[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    found = dict(places(schema["properties"]["spec"]))
    wanted = [field.replace("ROLE", role) for field in FIELDS.split() for role in ROLES]
    assert [field for field in wanted if field not in found] == []
    assert {path: found[path]["enum"] for path in ENUMS} == ENUMS
    assert schema["properties"]["spec"]["required"] == ["model", "engine", "decode"]


def test_the_proxy_finds_mooncakes_ports() -> None:
    ports = Ports()
    assert (ports.embeddings_push, ports.mooncake_bootstrap) == (MOONCAKE_PUSH_PORT, MOONCAKE_BOOTSTRAP_PORT)
