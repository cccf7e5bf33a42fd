"""Cases of the rules about the transfer of embeddings."""

from tests.unit.rules.case import Breaks, Case, Spares

_CONNECTOR = "spec.transfer.embeddings.connector"
_MOONCAKE = "transfer: {embeddings: {connector: ECMooncakeConnector}}"
_OLD, _FIRST = "engine: {version: 0.29.0}", "engine: {version: 0.30.0}"
"""The last release without ECMooncakeConnector, and the first with it."""

CASES = (
    Case(
        "embeddings-connector-unknown",
        (
            Breaks(
                "transfer: {embeddings: {connector: eccpuconnector}}",
                _CONNECTOR,
                "eccpuconnector",
                remedy="use ECCPUConnector",
            ),
            Breaks(
                "transfer: {embeddings: {connector: ECMoonCake}}",
                _CONNECTOR,
                "ECMoonCake",
                remedy="use ECMooncakeConnector",
            ),
            Breaks("transfer: {embeddings: {connector: Nope}}", _CONNECTOR, "Nope", remedy="ECExampleConnector"),
            Breaks("transfer: {embeddings: {connector: NixlConnector}}", _CONNECTOR, "NixlConnector"),
            Breaks(f"{{{_OLD}, {_MOONCAKE}}}", _CONNECTOR, "ECMooncakeConnector", remedy="0.30"),
            Breaks(
                f"{{{_OLD}, encode: {{parallelism: {{tensor: 2}}}}, {_MOONCAKE}}}", _CONNECTOR, "ECMooncakeConnector"
            ),
        ),
        (Spares(_MOONCAKE), Spares(f"{{{_FIRST}, {_MOONCAKE}}}")),
    ),
    Case(
        "mooncake-embeddings-with-prefill",
        (
            Breaks(f"{{prefill: {{}}, {_MOONCAKE}}}", _CONNECTOR, "ECMooncakeConnector"),
            Breaks(f"{{{_FIRST}, prefill: {{}}, {_MOONCAKE}}}", _CONNECTOR, "ECMooncakeConnector"),
        ),
        (Spares(_MOONCAKE), Spares("{prefill: {}, transfer: {embeddings: {connector: ECCPUConnector}}}")),
    ),
    Case(
        "mooncake-producer-single-rank",
        (
            Breaks(f"{{encode: {{parallelism: {{tensor: 2}}}}, {_MOONCAKE}}}", "spec.encode.parallelism.tensor", 2),
            Breaks(f"{{encode: {{parallelism: {{data: 2}}}}, {_MOONCAKE}}}", "spec.encode.parallelism.data", 2),
            Breaks(
                f"{{{_FIRST}, encode: {{parallelism: {{pipeline: 2}}}}, {_MOONCAKE}}}",
                "spec.encode.parallelism.pipeline",
                2,
            ),
        ),
        (Spares(f"{{decode: {{parallelism: {{tensor: 2}}}}, {_MOONCAKE}}}"),),
    ),
    Case(
        "nixl-in-image",
        (
            Breaks("engine: {image: 'mine/vllm:v0.33.0'}", "spec.engine.image", "mine/vllm:v0.33.0"),
            Breaks("engine: {version: 0.30.0, image: 'mine/vllm:v0.30.0'}", "spec.engine.image", "mine/vllm:v0.30.0"),
        ),
        (
            Spares("engine: {image: 'vllm/vllm-openai:v0.33.0'}"),
            Spares("engine: {image: 'vllm/vllm-openai'}"),
            Spares(
                "{engine: {image: 'mine/vllm:v0.33.0'}, transfer: {embeddings: {connector: ECCPUConnector}}}",
            ),
            Spares("engine: {image: 'mine/vllm:v0.33.0'}", local=True),
        ),
    ),
)
