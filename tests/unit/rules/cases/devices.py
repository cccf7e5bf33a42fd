"""Cases of the rules about devices."""

from tests.unit.rules.case import Breaks, Case, Spares

_MOONCAKE = "transfer: {embeddings: {connector: ECMooncakeConnector}}"
_CLAIM = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}"

CASES = (
    Case(
        "encoder-device-memory",
        (
            Breaks(f"{{encode: {{device: {{type: ROCm}}}}, {_MOONCAKE}}}", "spec.encode.device.type", "ROCm"),
            Breaks(f"{{encode: {{device: {{type: CPU}}}}, {_MOONCAKE}}}", "spec.encode.device.type", "CPU"),
            Breaks(
                f"{{device: {{type: ROCm}}, decode: {{device: {{type: CUDA}}}}, {_MOONCAKE}}}",
                "spec.device.type",
                "ROCm",
            ),
        ),
        (
            Spares("encode: {device: {type: ROCm}}"),
            Spares(f"{{encode: {{device: {{product: A}}}}, {_MOONCAKE}}}"),
        ),
    ),
    Case(
        "device-on-cpu",
        (
            Breaks(f"{{device: {{type: CPU, product: x}}, {_CLAIM}}}", "spec.device.product", "x"),
            Breaks(
                f"{{encode: {{device: {{type: CPU, resourceName: nvidia.com/gpu}}}}, {_CLAIM}}}",
                "spec.encode.device.resourceName",
                "nvidia.com/gpu",
            ),
        ),
        (
            Spares(f"{{device: {{type: CUDA, product: x}}, encode: {{device: {{type: CPU}}}}, {_CLAIM}}}"),
            Spares(f"{{device: {{type: CPU, runtimeClassName: gvisor}}, {_CLAIM}}}"),
        ),
    ),
    Case(
        "device-resource-twice",
        (
            Breaks(
                "decode: {resources: {limits: {nvidia.com/gpu: 2}}}",
                "spec.decode.resources.limits[nvidia.com/gpu]",
                "2",
            ),
            Breaks(
                "decode: {parallelism: {tensor: 4},"
                " resources: {requests: {nvidia.com/gpu: 2}, limits: {nvidia.com/gpu: 2}}}",
                "spec.decode.resources.limits[nvidia.com/gpu]",
                "2",
            ),
            Breaks(
                "decode: {device: {resourceName: nvidia.com/mig-1g.10gb},"
                " resources: {limits: {nvidia.com/mig-1g.10gb: 7}}}",
                "spec.decode.resources.limits[nvidia.com/mig-1g.10gb]",
                "7",
            ),
        ),
        (
            Spares("decode: {resources: {limits: {nvidia.com/gpu: 1}}}"),
            Spares("decode: {parallelism: {tensor: 2, data: 2}, resources: {limits: {nvidia.com/gpu: 4}}}"),
            Spares("decode: {resources: {limits: {rdma/hca: 2}}}"),
        ),
    ),
    Case(
        "instance-in-one-pod",
        (
            Breaks("decode: {parallelism: {tensor: 256}}", "spec.decode.parallelism.tensor", 256),
            Breaks("decode: {parallelism: {tensor: 4, data: 64}}", "spec.decode.parallelism.data", 64),
        ),
        (Spares("decode: {parallelism: {tensor: 8, data: 16}}"),),
    ),
)
