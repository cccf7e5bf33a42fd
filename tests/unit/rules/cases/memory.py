"""Cases of the rules about shared memory and memory limits."""

from tests.unit.rules.case import Breaks, Case, Spares

_LIMIT = "spec.decode.resources.limits.memory"

CASES = (
    Case(
        "shared-memory-above-limit",
        (
            Breaks("decode: {sharedMemorySize: 16Gi, resources: {limits: {memory: 12Gi}}}", _LIMIT, "12Gi"),
            Breaks("{prefill: {}, decode: {resources: {limits: {memory: 64Mi}}}}", _LIMIT, "64Mi"),
        ),
        (
            Spares("decode: {sharedMemorySize: 16Gi, resources: {limits: {memory: 17Gi}}}"),
            Spares("{prefill: {}, decode: {resources: {limits: {memory: 1Gi}}}}"),
        ),
    ),
    Case(
        "shared-memory-too-small",
        (
            Breaks(
                "{prefill: {}, decode: {sharedMemorySize: 64Mi, parallelism: {tensor: 2}}}",
                "spec.decode.sharedMemorySize",
                "64Mi",
            ),
            Breaks("encode: {sharedMemorySize: 4Gi}", "spec.encode.sharedMemorySize", "4Gi"),
            Breaks(
                "{prefill: {}, decode: {sharedMemorySize: 1Gi, args: [--mm-processor-cache-type=shm]}}",
                "spec.decode.sharedMemorySize",
                "1Gi",
            ),
        ),
        (Spares("encode: {sharedMemorySize: 8Gi}"), Spares("{prefill: {}, decode: {sharedMemorySize: 64Mi}}")),
    ),
)
