"""The plan of one role."""

import pytest

from epd_operator.api.names import LABEL_DATA_PARALLEL, LABEL_TENSOR_PARALLEL
from epd_operator.api.role import Role
from epd_operator.engine.drain import ROUTING
from epd_operator.plan.build import build
from epd_operator.plan.plan import RolePlan
from epd_proxy import discovery
from tests.unit.objects import deployment


def role(spec: str = "", which: Role = Role.DECODE, *, name: str = "m") -> RolePlan:
    found = build(deployment(spec, name=name)).role(which)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        ("", "vllm/vllm-openai:v0.33.0"),
        ("engine: {version: v0.32}", "vllm/vllm-openai:v0.32.0"),
        ("device: {type: ROCm}", "vllm/vllm-openai-rocm:v0.33.0"),
        ("engine: {image: 'vllm/vllm-openai@sha256:0'}", "vllm/vllm-openai@sha256:0"),
    ],
)
def test_image(spec: str, image: str) -> None:
    assert role(spec).image == image


def test_roles_on_different_devices_have_different_images() -> None:
    plan = build(deployment("encode: {device: {type: ROCm}}"))
    assert [role.image.partition(":")[0] for role in plan.roles] == ["vllm/vllm-openai-rocm", "vllm/vllm-openai"]


@pytest.mark.parametrize(
    ("spec", "resource", "count", "labels"),
    [
        ("", "nvidia.com/gpu", 1, {}),
        ("decode: {parallelism: {tensor: 2, pipeline: 2, data: 2}}", "nvidia.com/gpu", 8, {}),
        ("device: {type: ROCm, product: MI300X}", "amd.com/gpu", 1, {"amd.com/gpu.product-name": "MI300X"}),
        ("device: {product: A}", "nvidia.com/gpu", 1, {"nvidia.com/gpu.product": "A"}),
        (
            "{device: {product: A}, decode: {device: {product: B}}}",
            "nvidia.com/gpu",
            1,
            {"nvidia.com/gpu.product": "B"},
        ),
        ("{device: {type: CUDA, product: A}, decode: {device: {type: ROCm}}}", "amd.com/gpu", 1, {}),
        ("decode: {device: {resourceName: nvidia.com/mig-1g.10gb}}", "nvidia.com/mig-1g.10gb", 1, {}),
        (
            "decode: {resources: {claims: [{name: gpu}]}, template: {spec: {resourceClaims: [{name: gpu}]}}}",
            None,
            0,
            {},
        ),
    ],
)
def test_devices(spec: str, resource: str | None, count: int, labels: dict[str, str]) -> None:
    decode = role(spec)
    assert (decode.device_resource, decode.device_count, decode.node_labels) == (resource, count, labels)


def test_a_cpu_takes_no_device() -> None:
    spec = "{device: {type: CPU}, transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}}"
    decode = role(spec)
    assert (decode.device_resource, decode.device_count) == (None, 0)
    assert decode.image == "vllm/vllm-openai-cpu:v0.33.0"


@pytest.mark.parametrize(
    ("spec", "which", "ports"),
    [
        ("", Role.ENCODE, {"http": 8000, "ec-side": 5500}),
        ("", Role.DECODE, {"http": 8000}),
        ("transfer: {embeddings: {connector: ECMooncakeConnector}}", Role.ENCODE, {"http": 8000}),
        (
            "{decode: {parallelism: {tensor: 2}}, transfer: {embeddings: {connector: ECMooncakeConnector}}}",
            Role.DECODE,
            {"http": 8000, "ec-push-0": 14579, "ec-push-1": 14580},
        ),
        ("prefill: {parallelism: {data: 2}}", Role.PREFILL, {"http": 8000, "kv-side-0": 5600, "kv-side-1": 5601}),
        ("prefill: {parallelism: {tensor: 2}}", Role.PREFILL, {"http": 8000, "kv-side-0": 5600}),
        (
            "{prefill: {}, transfer: {kv: {connector: MooncakeConnector}}}",
            Role.PREFILL,
            {"http": 8000, "kv-bootstrap": 8998},
        ),
        ("{prefill: {}, transfer: {kv: {connector: MooncakeConnector}}}", Role.DECODE, {"http": 8000}),
    ],
)
def test_ports(spec: str, which: Role, ports: dict[str, int]) -> None:
    assert {port.name: port.number for port in role(spec, which).ports} == ports


def test_labels_and_selectors() -> None:
    plan = build(deployment("decode: {template: {metadata: {labels: {team: vision}}}}", name="qwen"))
    decode = plan.role(Role.DECODE)
    assert decode is not None
    assert decode.name == f"qwen-decode-{plan.revision}"
    assert decode.selector == {
        "app.kubernetes.io/instance": "qwen",
        "app.kubernetes.io/component": "decode",
        "epd.dev/revision": plan.revision,
    }
    assert decode.labels == {
        **decode.selector,
        "app.kubernetes.io/name": "epd",
        "app.kubernetes.io/managed-by": "epd-operator",
    }
    assert decode.service_labels == {
        **decode.labels,
        "epd.dev/role": "decode",
        "epd.dev/engine-version": "0.33.0",
        "epd.dev/embeddings-connector": "ECCPUConnector",
    }


def test_the_proxy_learns_how_many_ranks_there_are() -> None:
    decode = role("decode: {parallelism: {data: 4, tensor: 2}}")
    assert decode.service_labels[LABEL_DATA_PARALLEL] == "4"
    assert decode.service_labels[LABEL_TENSOR_PARALLEL] == "2"
    assert not {LABEL_DATA_PARALLEL, LABEL_TENSOR_PARALLEL} & {*decode.labels, *decode.selector}
    assert (LABEL_DATA_PARALLEL, LABEL_TENSOR_PARALLEL) == (
        discovery.LABEL_DATA_PARALLEL,
        discovery.LABEL_TENSOR_PARALLEL,
    )


def test_directories_of_revisions_differ() -> None:
    files = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}"
    one, other = role(files), role(f"{{model: {{id: a/b}}, {files}}}")
    assert one.directories != other.directories
    assert one.directories[0] in " ".join(one.command.argv)


def test_the_deadline_is_never_below_the_startup_timeout() -> None:
    decode = role("{decode: {startupTimeoutSeconds: 7200}, rollout: {progressDeadlineSeconds: 60}}")
    assert decode.progress_deadline_seconds == 7200 + ROUTING  # Kubernetes wants it above minReadySeconds


def test_who_decides_the_replicas() -> None:
    assert role("decode: {scaling: {mode: External}}").external_scaling
    assert not role("decode: {replicas: 3}").external_scaling
