"""A document becomes an object, or findings of its shape: one for each mistake, at its place, with what to write."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import BaseModel

from epd_operator.api.deployment import EPDDeployment
from epd_operator.api.fields import _model_in
from epd_operator.api.parse import MAX_DEPTH, MAX_NODES, SHAPE_RULES, parse
from epd_operator.api.wording import PATTERNS
from tests.unit.objects import ABSENT, MINIMAL, document, merged, yaml
from tests.unit.rules.test_cases import complaints
from tests.unit.strategies import documents, valid_documents

patient = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])

UNKNOWN = [
    ("foo: 1", "spec.foo", "use one of decode, device"),
    ("encoder: {}", "spec.encoder", "rename it to encode"),
    ("replicas: 2", "spec.replicas", "move it to spec.encode.replicas"),
    ("model: {ID: x}", "spec.model.ID", "rename it to id"),
    ("model: {name: x}", "spec.model.name", "architecture, id, revision"),
    ("model: {tokenSecretRef: {nam: a, key: b}}", "spec.model.tokenSecretRef.nam", "rename it to name"),
    ("model: {volume: {nfs: {}}}", "spec.model.volume.nfs", "emptyDir, hostPath, image, persistentVolumeClaim"),
    (
        "model: {volume: {persistentVolumeClaim: {claim: a}}}",
        "spec.model.volume.persistentVolumeClaim.claim",
        "rename it to claimName",
    ),
    ("engine: {verison: x}", "spec.engine.verison", "rename it to version"),
    ("engine: {image_pull_policy: Always}", "spec.engine.image_pull_policy", "rename it to imagePullPolicy"),
    ("engine: {env: [{nam: x}]}", "spec.engine.env[0].nam", "rename it to name"),
    ("device: {resource: a}", "spec.device.resource", "rename it to resourceName"),
    ("encode: {replica: 1}", "spec.encode.replica", "rename it to replicas"),
    ("encode: {tensorIPC: torch_shm}", "spec.encode.tensorIPC", "move it to spec.encode.preprocessing.tensorIPC"),
    ("encode: {tensorParallelism: 2}", "spec.encode.tensorParallelism", "move it to spec.encode.parallelism.tensor"),
    ("encode: {parallelism: {tp: 2}}", "spec.encode.parallelism.tp", "rename it to tensor"),
    ("encode: {preprocessing: {tensorIpc: x}}", "spec.encode.preprocessing.tensorIpc", "rename it to tensorIPC"),
    ("encode: {scaling: {mod: External}}", "spec.encode.scaling.mod", "rename it to mode"),
    ("encode: {resources: {limit: {}}}", "spec.encode.resources.limit", "rename it to limits"),
    ("encode: {template: {spce: {}}}", "spec.encode.template.spce", "rename it to spec"),
    ("encode: {template: {metadata: {label: {}}}}", "spec.encode.template.metadata.label", "rename it to labels"),
    ("transfer: {embeding: {}}", "spec.transfer.embeding", "rename it to embeddings"),
    ("transfer: {embeddings: {extra_config: {}}}", "spec.transfer.embeddings.extra_config", "rename it to extraConfig"),
    (
        "transfer: {embeddings: {volume: {claimName: a}}}",
        "spec.transfer.embeddings.volume.claimName",
        "move it to spec.transfer.embeddings.volume.persistentVolumeClaim.claimName",
    ),
    (
        "transfer: {embeddings: {volume: {hostPath: {path: /a}}}}",
        "spec.transfer.embeddings.volume.hostPath",
        "replace it by persistentVolumeClaim",
    ),
    ("transfer: {kv: {conector: x}}", "spec.transfer.kv.conector", "rename it to connector"),
    ("proxy: {servce: {}}", "spec.proxy.servce", "rename it to service"),
    ("proxy: {service: {ports: 80}}", "spec.proxy.service.ports", "rename it to port"),
    ("proxy: {media: {domains: []}}", "spec.proxy.media.domains", "rename it to allowedDomains"),
    ("proxy: {limits: {bodysize: 1}}", "spec.proxy.limits.bodysize", "rename it to bodySize"),
    ("rollout: {surge: 1}", "spec.rollout.surge", "rename it to maxSurge"),
]

INVALID = [
    ("device: {type: cuda}", "spec.device.type", "write CUDA"),
    ("device: {type: GPU}", "spec.device.type", "write CUDA"),
    ("device: {type: TPU}", "spec.device.type", "use CUDA, ROCm, XPU or CPU"),
    ("device: CUDA", "spec.device", "write {type: CUDA}"),
    ("encode: {device: cpu}", "spec.encode.device", "write {type: CPU}"),
    ("encode: {preprocessing: {device: GPU}}", "spec.encode.preprocessing.device", "write Accelerator"),
    ("encode: {preprocessing: {device: auto}}", "spec.encode.preprocessing.device", "write Auto"),
    (
        "encode: {preprocessing: {tensorIPC: cuda_ipc}}",
        "spec.encode.preprocessing.tensorIPC",
        "torch_shm or direct_rpc",
    ),
    ("encode: {preprocessing: {tensorIPC: torch-shm}}", "spec.encode.preprocessing.tensorIPC", "write torch_shm"),
    ("encode: {scaling: {mode: external}}", "spec.encode.scaling.mode", "write External"),
    ("encode: {scaling: {mode: HPA}}", "spec.encode.scaling.mode", "use External"),
    ("rollout: {strategy: RollingUpdate}", "spec.rollout.strategy", "write Proportional"),
    ("proxy: {service: {type: clusterip}}", "spec.proxy.service.type", "write ClusterIP"),
    ("proxy: {mediaForwarding: raw}", "spec.proxy.mediaForwarding", "write Raw"),
    ("preflight: enforce", "spec.preflight", "write Enforce"),
    ("engine: {imagePullPolicy: always}", "spec.engine.imagePullPolicy", "write Always"),
    ("engine: {version: 0.33}", "spec.engine.version", '"0.33.0"'),
    ("engine: {version: ''}", "spec.engine.version", "write a value"),
    ("engine: {image: 'a b'}", "spec.engine.image", "without spaces"),
    ("engine: {args: --foo}", "spec.engine.args", 'write ["--foo"]'),
    ("engine: {args: {a: b}}", "spec.engine.args", "each item in a line"),
    ("engine: {args: [1]}", "spec.engine.args[0]", 'put it in quotes: "1"'),
    ("engine: {env: {A: b}}", "spec.engine.env", "write a list of {name: ..., value: ...}"),
    ("engine: {env: [{name: A, value: 1}]}", "spec.engine.env[0].value", 'put it in quotes: "1"'),
    ("engine: {env: [{name: A, value: true}]}", "spec.engine.env[0].value", "put what you wrote in quotes"),
    ("engine: {env: [{name: 1A, value: x}]}", "spec.engine.env[0].name", "no digit first"),
    ("engine: {env: [{name: A}, {name: A}]}", "spec.engine.env", "remove one of them"),
    ("engine: {imagePullSecrets: [a]}", "spec.engine.imagePullSecrets[0]", "write {name: a}"),
    ("decode: {replicas: '4'}", "spec.decode.replicas", "write 4 without quotes"),
    ("decode: {replicas: 2.0}", "spec.decode.replicas", "write 2"),
    ("decode: {replicas: 2.5}", "spec.decode.replicas", "write a whole number"),
    ("decode: {replicas: true}", "spec.decode.replicas", "write a whole number"),
    ("decode: {replicas: -1}", "spec.decode.replicas", "use 0 or more"),
    ("decode: {replicas: 100000}", "spec.decode.replicas", "use 10000 or less"),
    ("decode: {parallelism: {tensor: 0}}", "spec.decode.parallelism.tensor", "use 1 or more"),
    ("decode: {parallelism: 2}", "spec.decode.parallelism", "write {tensor: 2}"),
    ("decode: 3", "spec.decode", "write {replicas: 3}"),
    ("decode: []", "spec.decode", "write an object of replicas"),
    ("decode: {startupTimeoutSeconds: 1}", "spec.decode.startupTimeoutSeconds", "use 10 or more"),
    ("decode: {drainTimeoutSeconds: 10m}", "spec.decode.drainTimeoutSeconds", "write a whole number"),
    ("decode: {sharedMemorySize: 4GB}", "spec.decode.sharedMemorySize", "write 4Gi"),
    ("decode: {sharedMemorySize: 1.5}", "spec.decode.sharedMemorySize", 'write "1.5"'),
    ("decode: {resources: {limits: {memory: -4Gi}}}", "spec.decode.resources.limits.memory", "for example 4Gi"),
    ("decode: {resources: {limits: {a.b/c: x}}}", "spec.decode.resources.limits[a.b/c]", "for example 4Gi"),
    ("model: qwen", "spec.model", "write {id: qwen}"),
    ("model: {id: a b}", "spec.model.id", "without spaces"),
    ("model: {id: -x}", "spec.model.id", "without a dash in front"),
    ("model: {tokenSecretRef: a}", "spec.model.tokenSecretRef", "write {name: a}"),
    ("model: {volume: {}}", "spec.model.volume", "name one of them"),
    ("model: {volume: {emptyDir: {}, hostPath: {path: /a}}}", "spec.model.volume", "keep one of them"),
    ("model: {volume: {hostPath: {path: a}}}", "spec.model.volume.hostPath.path", "begin it with a slash"),
    ("transfer: {kv: {connector: EC-CPU}}", "spec.transfer.kv.connector", "vLLM's own name"),
    ("proxy: {service: {port: 0}}", "spec.proxy.service.port", "use 1 or more"),
    ("proxy: {media: {allowedDomains: ['https://a.b/c']}}", "spec.proxy.media.allowedDomains[0]", "write a.b"),
    ("proxy: {media: {allowedDomains: ['*.b']}}", "spec.proxy.media.allowedDomains[0]", "list each host"),
    ("proxy: {media: {allowedDomains: [a, a]}}", "spec.proxy.media.allowedDomains", "remove one of them"),
    ("proxy: {media: {allowedDomains: a.b}}", "spec.proxy.media.allowedDomains", 'write ["a.b"]'),
    ("rollout: {maxSurge: 150%}", "spec.rollout.maxSurge", "as 25%"),
    ("suspend: 'true'", "spec.suspend", "write true without quotes"),
    ("suspend: 'no'", "spec.suspend", "write false without quotes"),
    ("operatorClass: Blue_1", "spec.operatorClass", "for example blue-1"),
]


def rules(spec: str) -> list[tuple[str, str]]:
    return [(finding.rule, finding.path) for finding in parse(document(spec)).findings]


@pytest.mark.parametrize(("spec", "path", "remedy"), UNKNOWN)
def test_unknown_fields_get_the_nearest_name(spec: str, path: str, remedy: str) -> None:
    (finding,) = parse(document(spec)).findings
    assert (finding.rule, finding.path) == ("unknown-field", path)
    assert remedy in finding.remedy
    assert complaints(finding) == []


@pytest.mark.parametrize(("spec", "path", "remedy"), INVALID)
def test_invalid_values_get_what_to_write(spec: str, path: str, remedy: str) -> None:
    (finding,) = parse(document(spec)).findings
    assert (finding.rule, finding.path) == ("invalid-value", path)
    assert remedy in finding.remedy
    assert complaints(finding) == []


@pytest.mark.parametrize(
    ("patch", "path", "remedy"),
    [
        ({"spec": ABSENT}, "spec", "add spec with model"),
        ({"metadata": ABSENT}, "metadata", "add metadata with name"),
        ({"metadata": {"name": ABSENT}}, "metadata.name", "add name"),
        ({"spec": {"model": ABSENT}}, "spec.model", "add model with id"),
        ({"spec": {"model": {"id": ABSENT}}}, "spec.model.id", "add id"),
        ({"spec": {"decode": {"scaling": {}}}}, "spec.decode.scaling.mode", "add mode"),
        ({"spec": {"model": {"tokenSecretRef": {"name": "a"}}}}, "spec.model.tokenSecretRef.key", "add key"),
    ],
)
def test_missing_fields(patch: dict[str, Any], path: str, remedy: str) -> None:
    (finding,) = parse(merged(MINIMAL, patch)).findings
    assert (finding.rule, finding.path, finding.value, finding.remedy) == ("missing-field", path, None, remedy)


def test_an_unknown_field_hides_only_the_one_that_was_meant() -> None:
    assert rules("model: {tokenSecretRef: {nam: a}}") == [
        ("missing-field", "spec.model.tokenSecretRef.key"),
        ("unknown-field", "spec.model.tokenSecretRef.nam"),
    ]


def test_several_mistakes_are_all_told() -> None:
    assert rules("{foo: 1, device: {type: cuda}, decode: {replicas: -1}}") == [
        ("invalid-value", "spec.device.type"),
        ("invalid-value", "spec.decode.replicas"),
        ("unknown-field", "spec.foo"),
    ]


def test_replicas_and_scaling() -> None:
    assert rules("decode: {replicas: 2, scaling: {mode: External}}") == [("replicas-or-scaling", "spec.decode")]
    assert rules("decode: {replicas: 0, scaling: {mode: External}}") == [("replicas-or-scaling", "spec.decode")]


@pytest.mark.parametrize("role", ["encode", "prefill", "decode"])
def test_a_role_that_is_null_is_refused(role: str) -> None:
    (finding,) = parse(document(f"{role}: null")).findings
    assert (finding.rule, finding.path) == ("null-role", f"spec.{role}")
    assert f"{role}: {{}}" in finding.remedy


@pytest.mark.parametrize("spec", ["transfer: null", "suspend: null", "model: {revision: null}", "decode: {args: null}"])
def test_null_is_the_default_elsewhere(spec: str) -> None:
    parsed = parse(document(spec))
    assert parsed.findings == ()
    assert parsed.deployment == parse(document()).deployment


def test_names_of_fields_are_those_of_the_api_only() -> None:
    """Python's own names are no fields: the API server would refuse them."""
    assert rules("operator_class: a") == [("unknown-field", "spec.operator_class")]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"name": "m", "lables": {}}, [("unknown-field", "metadata.lables", "rename it to labels")]),
        ({"nmae": "m"}, [("unknown-field", "metadata.nmae", "rename it to name")]),
        ({"name": "m", "replicas": 1}, [("unknown-field", "metadata.replicas", "remove it")]),
        ({"name": "m", "uid": "u", "somethingNew": {}}, []),
        ({"name": "m", "managedFields": [], "ownerReferences": [], "finalizers": []}, []),
    ],
)
def test_metadata(metadata: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    found = parse({**MINIMAL, "metadata": metadata}).findings
    assert [(finding.rule, finding.path) for finding in found] == [(rule, path) for rule, path, _ in expected]
    assert all(remedy in finding.remedy for finding, (_, _, remedy) in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("patch", "path"),
    [({1: 2}, "[1]"), ({"spec": {1: 2}}, "spec[1]"), ({"spec": {"encode": {True: 1}}}, "spec.encode[1]")],
)
def test_keys_that_are_no_text(patch: dict[Any, Any], path: str) -> None:
    assert [(finding.rule, finding.path) for finding in parse(merged(MINIMAL, patch)).findings] == [
        ("invalid-value", path)
    ]


def test_status_is_not_judged() -> None:
    assert parse({**MINIMAL, "status": {"anything": [1]}}).findings == ()


def test_other_kinds() -> None:
    (finding,) = parse({**MINIMAL, "kind": "Deployment"}).findings
    assert (finding.path, finding.remedy) == ("kind", "use EPDDeployment")
    (finding,) = parse({**MINIMAL, "apiVersion": "epd.dev/v1"}).findings
    assert (finding.path, finding.remedy) == ("apiVersion", "use epd.dev/v1alpha1")


@pytest.mark.parametrize("value", [None, [], "text", 3, True, {}])
def test_what_is_no_document(value: object) -> None:
    parsed = parse(value)
    assert parsed.deployment is None
    assert parsed.findings


def test_bounds() -> None:
    deep: Any = {}
    for _ in range(MAX_DEPTH):
        deep = {"a": deep}
    wide = [0] * (MAX_NODES + 1)
    for value in (deep, wide):
        (finding,) = parse(merged(MINIMAL, {"spec": {"decode": {"template": {"spec": {"x": value}}}}})).findings
        assert finding.rule == "document-too-large"


@patient
@given(documents())
def test_nothing_is_ever_raised(value: Any) -> None:
    parsed = parse(value)
    assert (parsed.deployment is None) == bool(parsed.findings)
    for finding in parsed.findings:
        assert complaints(finding) == [], str(finding)
        assert finding.remedy != "correct the value"
        assert finding.rule in SHAPE_RULES


@patient
@given(valid_documents())
def test_an_object_comes_back_as_it_was_written(value: dict[str, Any]) -> None:
    parsed = parse(value)
    assert parsed.deployment is not None
    written = parsed.deployment.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert parse(written).deployment == parsed.deployment


def patterns(model: type[BaseModel], seen: set[type[BaseModel]]) -> set[str]:
    """Every regular expression in an API type."""
    if model in seen:
        return set()
    seen.add(model)
    found = set()
    schema = model.model_json_schema()
    stack: list[Any] = [schema]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            pattern = node.get("pattern")
            if isinstance(pattern, str) and "x-kubernetes-int-or-string" not in node:
                found.add(pattern)
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return found


def test_every_pattern_has_words() -> None:
    assert patterns(EPDDeployment, set()) <= PATTERNS.keys()
    assert _model_in(EPDDeployment) is EPDDeployment


def test_yaml_of_tests_is_what_a_user_writes() -> None:
    assert yaml("decode: {}") == {"decode": {}}
