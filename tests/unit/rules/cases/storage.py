"""Cases of the rules about volumes."""

from tests.unit.rules.case import Breaks, Case, Spares

_CLAIM = "volume: {persistentVolumeClaim: {claimName: a}}"
_EXAMPLE = "transfer: {embeddings: {connector: ECExampleConnector}}"
_VOLUME = "spec.transfer.embeddings.volume"

CASES = (
    Case(
        "shared-directory-without-claim",
        (
            Breaks(_EXAMPLE, _VOLUME, None, remedy="claimName"),
            Breaks("device: {type: CPU}", _VOLUME, None),
            Breaks("encode: {device: {type: CPU}}", _VOLUME, None),
            Breaks("engine: {version: 0.29.0}", _VOLUME, None),
            Breaks("{prefill: {}, transfer: {kv: {connector: ExampleConnector}}}", "spec.transfer.kv.volume", None),
            Breaks(
                "{prefill: {}, transfer: {kv: {connector: ExampleConnector},"
                " embeddings: {connector: ECExampleConnector}}}",
                _VOLUME,
                None,
            ),
        ),
        (
            Spares(f"transfer: {{embeddings: {{connector: ECExampleConnector, {_CLAIM}}}}}"),
            Spares(_EXAMPLE, local=True),
            Spares(f"{{prefill: {{}}, transfer: {{kv: {{connector: ExampleConnector, {_CLAIM}}}}}}}"),
            Spares(f"{{prefill: {{}}, transfer: {{kv: {{connector: ExampleConnector}}, embeddings: {{{_CLAIM}}}}}}}"),
        ),
    ),
    Case(
        "volume-without-use",
        (
            Breaks(f"transfer: {{embeddings: {{connector: ECCPUConnector, {_CLAIM}}}}}", _VOLUME, "a"),
            Breaks(f"{{prefill: {{}}, transfer: {{kv: {{{_CLAIM}}}}}}}", "spec.transfer.kv.volume", "a"),
        ),
        (
            Spares(
                "{prefill: {}, transfer: {kv: {connector: ExampleConnector},"
                f" embeddings: {{connector: ECCPUConnector, {_CLAIM}}}}}}}"
            ),
        ),
    ),
    Case(
        "model-path-escapes",
        (
            Breaks("model: {id: ./../a, volume: {emptyDir: {}}}", "spec.model.id", "./../a"),
            Breaks("model: {id: ../a}", "spec.model.id", "../a"),
            Breaks("model: {id: ., volume: {emptyDir: {}}}", "spec.model.id", "."),
        ),
        (Spares("model: {id: ./a..b, volume: {emptyDir: {}}}"),),
    ),
    Case(
        "model-path-without-volume",
        (
            Breaks("model: {id: ./a}", "spec.model.id", "./a"),
            Breaks("model: {id: /a}", "spec.model.id", "/a"),
        ),
        (Spares("model: {id: /a, volume: {emptyDir: {}}}"), Spares("model: {id: ./a}", local=True)),
    ),
)
