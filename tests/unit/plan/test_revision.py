"""What makes a new revision, what restarts a role in place, and what restarts nothing."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_operator.api.role import Role
from epd_operator.plan.build import build
from epd_operator.plan.plan import Plan
from epd_operator.plan.revision import digest
from tests.unit.objects import deployment
from tests.unit.strategies import json_values

BASE = "{prefill: {}, decode: {replicas: 2}, encode: {replicas: 2}}"


def plan(change: str = "") -> Plan:
    """E+P+D with a change."""
    return build(deployment(BASE, change))


def hashes(of: Plan) -> dict[Role, str]:
    """The template hash of each role."""
    return {role.role: role.template_hash for role in of.roles}


NOTHING = {
    "replicas": ("decode: {replicas: 2}", "decode: {replicas: 7}"),
    "scaling": ("decode: {replicas: 2}", "decode: {replicas: <absent>, scaling: {mode: External}}"),
    "suspend": ("suspend: false", "suspend: true"),
    "proxy replicas": ("proxy: {replicas: 1}", "proxy: {replicas: 5}"),
    "proxy settings": ("proxy: {mediaForwarding: Metadata}", "proxy: {mediaForwarding: Raw, limits: {bodySize: 1Mi}}"),
    "proxy pods": (
        "proxy: {}",
        "proxy: {template: {spec: {priorityClassName: x}}, resources: {limits: {memory: 4Gi}}}",
    ),
    "service": ("proxy: {service: {type: ClusterIP}}", "proxy: {service: {type: NodePort, annotations: {a: b}}}"),
    "rollout": ("rollout: {}", "rollout: {strategy: BlueGreen, maxSurge: 1, paused: true, historyLimit: 2}"),
    "preflight": ("preflight: Warn", "preflight: Enforce"),
    "architecture": ("model: {}", "model: {architecture: Qwen3VLForConditionalGeneration}"),
    "operatorClass": ("suspend: false", "operatorClass: blue"),
    "a default written out": ("transfer: {}", "transfer: {embeddings: {connector: ECCPUConnector, cacheSize: 4Gi}}"),
    "another default written out": ("transfer: {}", "transfer: {kv: {connector: NixlConnector}}"),
    "an empty transfer": ("suspend: false", "transfer: {embeddings: {}, kv: {}}"),
    "the image's version again": (
        "engine: {image: 'vllm/vllm-openai:v0.33.0'}",
        "engine: {image: 'vllm/vllm-openai:v0.33.0', version: 0.33.0}",
    ),
}
IN_PLACE = {
    "args": "decode: {args: [--max-num-seqs=9]}",
    "env": "decode: {env: [{name: A, value: b}]}",
    "resources": "decode: {resources: {limits: {memory: 64Gi}}}",
    "shared memory": "decode: {sharedMemorySize: 16Gi}",
    "parallelism": "decode: {parallelism: {tensor: 2}}",
    "product": "decode: {device: {product: A}}",
    "resource name": "decode: {device: {resourceName: example.com/gpu}}",
    "runtime class": "decode: {device: {runtimeClassName: nvidia}}",
    "startup": "decode: {startupTimeoutSeconds: 60}",
    "drain": "decode: {drainTimeoutSeconds: 60}",
    "template": "decode: {template: {spec: {nodeSelector: {a: b}}}}",
    "labels of pods": "decode: {template: {metadata: {labels: {a: b}}}}",
    "claims": "decode: {resources: {claims: [{name: gpu}]}, template: {spec: {resourceClaims: [{name: gpu}]}}}",
}
IN_PLACE_ALL = {
    "pull policy": "engine: {imagePullPolicy: Always}",
    "pull secrets": "engine: {imagePullSecrets: [{name: a}]}",
    "args of all": "engine: {args: [--max-num-seqs=9]}",
    "env of all": "engine: {env: [{name: A, value: b}]}",
    "token": "model: {tokenSecretRef: {name: a, key: b}}",
    "model volume": "model: {volume: {emptyDir: {}}}",
    "media policy": "proxy: {media: {allowedDomains: [a.example]}}",
}
REVISION = {
    "release": "engine: {version: 0.33.1}",
    "image": "engine: {image: 'vllm/vllm-openai:v0.33.0-x'}",
    "model": "model: {id: Qwen/Other}",
    "model revision": "model: {revision: abc}",
    "served name": "model: {servedName: other}",
    "dtype": "engine: {args: [--dtype=float16]}",
    "dtype, spelled otherwise": "decode: {args: [--dtype, bfloat16]}",
    "block size": "decode: {args: [--block-size=32]}",
    "media options": "engine: {args: ['--media-io-kwargs.video.backend', opencv]}",
    "offline": "engine: {env: [{name: HF_HUB_OFFLINE, value: '1'}]}",
    "offline, elsewhere": "engine: {env: [{name: HF_HUB_OFFLINE, valueFrom: {configMapKeyRef: {name: a, key: b}}}]}",
    "device": "device: {type: ROCm}",
    "embeddings connector": "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}",
    "cache size": "transfer: {embeddings: {cacheSize: 8Gi}}",
    "KV connector": "transfer: {kv: {connector: MooncakeConnector}}",
    "KV settings": "transfer: {kv: {extraConfig: {kv_lease_duration: 60}}}",
    "without prefill": "prefill: <absent>",
    "without encode": "encode: <absent>",
}


@pytest.mark.parametrize(("one", "other"), NOTHING.values(), ids=NOTHING)
def test_nothing_restarts(one: str, other: str) -> None:
    before, after = plan(one), plan(other)
    assert before.revision == after.revision
    assert hashes(before) == hashes(after)


@pytest.mark.parametrize("change", IN_PLACE.values(), ids=IN_PLACE)
def test_one_role_restarts_in_place(change: str) -> None:
    before, after = plan(), plan(change)
    assert before.revision == after.revision
    changed = {role for role, template in hashes(after).items() if hashes(before)[role] != template}
    assert changed == {Role.DECODE}


@pytest.mark.parametrize("change", IN_PLACE_ALL.values(), ids=IN_PLACE_ALL)
def test_all_roles_restart_in_place(change: str) -> None:
    before, after = plan(), plan(change)
    assert before.revision == after.revision
    assert all(hashes(before)[role] != template for role, template in hashes(after).items())


@pytest.mark.parametrize("change", REVISION.values(), ids=REVISION)
def test_a_new_revision(change: str) -> None:
    assert plan().revision != plan(change).revision


def test_every_compatible_change_is_another_revision() -> None:
    revisions = [plan(change).revision for change in REVISION.values()]
    assert len(set(revisions)) == len(revisions)


def test_the_revision_is_a_label_and_a_name() -> None:
    assert re.fullmatch(r"[0-9a-f]{8}", plan().revision)


def test_names_do_not_enter_the_revision() -> None:
    assert build(deployment(name="a")).revision == build(deployment(name="b")).revision


def test_where_it_runs_does_not_enter_the_hashes() -> None:
    with_claim = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}"
    here, there = (build(deployment(with_claim), local=local) for local in (True, False))
    assert here.revision == there.revision
    assert hashes(here) == hashes(there)


@given(st.dictionaries(st.text(max_size=5), json_values(5), max_size=4))
def test_digest_ignores_the_order_of_keys(value: dict[str, object]) -> None:
    assert digest(value) == digest(dict(reversed(value.items())))
