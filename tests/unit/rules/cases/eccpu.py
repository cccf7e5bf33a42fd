"""Cases of the rules about ECCPUConnector."""

from tests.unit.rules.case import Breaks, Case, Spares

_CONNECTOR = "spec.transfer.embeddings.connector"
_OLD, _FIRST = "engine: {version: 0.29.0}", "engine: {version: 0.30.0}"
"""The last release in which it moves nothing, and the first in which it does."""
_ECCPU = "transfer: {embeddings: {connector: ECCPUConnector}}"
_EXTRA = "spec.transfer.embeddings.extraConfig"
_BYTES = "transfer: {embeddings: {extraConfig: {ec_cpu_bytes: "
_16GI = "transfer: {embeddings: {cacheSize: 16Gi}}"
_LIMIT = "resources: {limits: {memory: 8Gi}}"

CASES = (
    Case(
        "eccpu-moves-nothing",
        (
            Breaks(
                "{engine: {version: 0.29.1}, transfer: {embeddings: {connector: ECCPUConnector}}}",
                _CONNECTOR,
                "ECCPUConnector",
                remedy="0.30",
            ),
            Breaks(f"{_OLD}\ndevice: {{type: CPU}}\n{_ECCPU}", _CONNECTOR, "ECCPUConnector"),
            Breaks(f"{_OLD}\nencode: {{parallelism: {{data: 2}}}}\n{_ECCPU}", _CONNECTOR, "ECCPUConnector"),
        ),
        (Spares("{engine: {version: 0.30.0}, transfer: {embeddings: {connector: ECCPUConnector}}}"),),
    ),
    Case(
        "eccpu-without-nixl",
        (
            Breaks(
                "transfer: {embeddings: {extraConfig: {ec_enable_nixl: false}}}",
                f"{_EXTRA}.ec_enable_nixl",
                False,
            ),
            Breaks(
                f"{_FIRST}\ntransfer: {{embeddings: {{extraConfig: {{ec_enable_nixl: false}}}}}}",
                f"{_EXTRA}.ec_enable_nixl",
                False,
            ),
        ),
        (Spares("transfer: {embeddings: {extraConfig: {ec_enable_nixl: true}}}"),),
    ),
    Case(
        "eccpu-data-parallel",
        (
            Breaks("encode: {parallelism: {data: 2}}", "spec.encode.parallelism.data", 2),
            Breaks(f"{_FIRST}\nencode: {{parallelism: {{data: 2}}}}", "spec.encode.parallelism.data", 2),
        ),
        (
            Spares("decode: {parallelism: {data: 2}}"),
            Spares(
                "{encode: {parallelism: {data: 2}},"
                " transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}}"
            ),
        ),
    ),
    Case(
        "ec-cpu-bytes-invalid",
        (
            Breaks(f"{_BYTES}4Gi}}}}}}", f"{_EXTRA}.ec_cpu_bytes", "4Gi", remedy="cacheSize"),
            Breaks(f"{_BYTES}0}}}}}}", f"{_EXTRA}.ec_cpu_bytes", 0),
            Breaks(f"{_BYTES}0}}, connector: ECCPUConnector}}}}", f"{_EXTRA}.ec_cpu_bytes", 0),
            Breaks("transfer: {embeddings: {cacheSize: 0}}", "spec.transfer.embeddings.cacheSize", "0"),
        ),
        (
            Spares(f"{_BYTES}4096}}}}}}"),
            Spares(
                "transfer: {embeddings: {cacheSize: 0, volume: {persistentVolumeClaim: {claimName: a}}}}",
            ),
        ),
    ),
    Case(
        "ec-cpu-bytes-unclear",
        (
            Breaks(f"{_BYTES}4096}}, cacheSize: 4Gi}}}}", f"{_EXTRA}.ec_cpu_bytes", 4096, remedy="cacheSize"),
            Breaks(f"{_BYTES}true}}}}}}", f"{_EXTRA}.ec_cpu_bytes", True),
            Breaks(f"{_BYTES}-1}}}}}}", f"{_EXTRA}.ec_cpu_bytes", -1),
            Breaks(f"{_BYTES}'4096'}}}}}}", f"{_EXTRA}.ec_cpu_bytes", "4096"),
        ),
        (Spares(f"{_BYTES}4096}}, cacheSize: 4Ki}}}}"),),
    ),
    Case(
        "ec-cpu-bytes-shared-memory",
        (
            Breaks(f"{{encode: {{sharedMemorySize: 8Gi}}, {_16GI}}}", "spec.encode.sharedMemorySize", "8Gi"),
            Breaks("decode: {sharedMemorySize: 64Mi}", "spec.decode.sharedMemorySize", "64Mi", remedy="default 4Gi"),
            Breaks(
                f"{{encode: {{sharedMemorySize: 8Gi}}, decode: {{sharedMemorySize: 12Gi}}, {_16GI}}}",
                "spec.transfer.embeddings.cacheSize",
                "16Gi",
            ),
            Breaks(
                f"{{encode: {{sharedMemorySize: 1Ki}}, decode: {{sharedMemorySize: 2Ki}}, {_BYTES}4096}}}}}}}}",
                f"{_EXTRA}.ec_cpu_bytes",
                4096,
            ),
            Breaks("{decode: {parallelism: {data: 4}, sharedMemorySize: 8Gi}}", "spec.decode.sharedMemorySize", "8Gi"),
        ),
        (
            Spares(f"{{encode: {{sharedMemorySize: 18Gi}}, decode: {{sharedMemorySize: 18Gi}}, {_16GI}}}"),
            Spares("{prefill: {}, decode: {sharedMemorySize: 64Mi}}"),
        ),
    ),
    Case(
        "ec-cpu-bytes-memory-limit",
        (
            Breaks(f"{{decode: {{{_LIMIT}}}, {_16GI}}}", "spec.decode.resources.limits.memory", "8Gi"),
            Breaks(
                f"{{encode: {{{_LIMIT}}}, decode: {{{_LIMIT}}}, {_16GI}}}",
                "spec.transfer.embeddings.cacheSize",
                "16Gi",
            ),
            Breaks(
                "{encode: {resources: {limits: {memory: 4Gi}}}, decode: {resources: {limits: {memory: 2Gi}}}}",
                "spec.transfer.embeddings.cacheSize",
                None,
            ),
            Breaks(
                "{decode: {resources: {limits: {memory: 4Gi}}}}",
                "spec.decode.resources.limits.memory",
                "4Gi",
            ),
        ),
        (
            Spares("{decode: {resources: {limits: {memory: 32Gi}}}}"),
            Spares(f"{{prefill: {{}}, decode: {{{_LIMIT}}}, {_16GI}}}"),
            Spares("{decode: {resources: {requests: {memory: 1Gi}}}}"),
        ),
    ),
    Case(
        "eccpu-on-cpu",
        (
            Breaks(
                f"engine: {{version: 0.32.0}}\ndevice: {{type: CPU}}\n{_ECCPU}",
                _CONNECTOR,
                "ECCPUConnector",
                remedy="ECExampleConnector",
            ),
            Breaks(f"{_FIRST}\ndevice: {{type: CPU}}\n{_ECCPU}", _CONNECTOR, "ECCPUConnector"),
        ),
        (Spares(f"prefill: {{}}\n{_ECCPU}"), Spares(f"device: {{type: CPU}}\n{_ECCPU}")),
    ),
)
