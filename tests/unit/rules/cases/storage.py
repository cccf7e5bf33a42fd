"""Cases of the rules about volumes."""

from tests.unit.rules.case import Breaks, Case, Spares

_CLAIM = "volume: {persistentVolumeClaim: {claimName: a}}"
_READ_ONLY = "volume: {persistentVolumeClaim: {claimName: a, readOnly: true}}"
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
        "volume-read-only",
        (
            Breaks(f"transfer: {{embeddings: {{{_READ_ONLY}}}}}", f"{_VOLUME}.persistentVolumeClaim.readOnly", True),
            Breaks(
                f"{{prefill: {{}}, transfer: {{kv: {{connector: ExampleConnector, {_READ_ONLY}}}}}}}",
                "spec.transfer.kv.volume.persistentVolumeClaim.readOnly",
                True,
            ),
            Breaks(f"model: {{{_READ_ONLY}}}", "spec.model.volume.persistentVolumeClaim.readOnly", True),
            Breaks("model: {volume: {image: {reference: a/b}}}", "spec.model.volume.image", "a/b", remedy="model.id"),
        ),
        (
            Spares(f"model: {{id: ./a, {_READ_ONLY}}}"),
            Spares("model: {id: /, volume: {image: {reference: a/b}}}"),
            Spares(f"transfer: {{embeddings: {{{_READ_ONLY}}}}}", local=True),
        ),
    ),
    Case(
        "model-id-malformed",
        (
            Breaks(
                "model: {id: 'https://huggingface.co/Qwen/Qwen3-VL-8B-Instruct/'}",
                "spec.model.id",
                "https://huggingface.co/Qwen/Qwen3-VL-8B-Instruct/",
                remedy="write Qwen/Qwen3-VL-8B-Instruct",
            ),
            Breaks("model: {id: 'hf://a/b'}", "spec.model.id", "hf://a/b", remedy="write a/b"),
            Breaks("model: {id: a/b/c}", "spec.model.id", "a/b/c", remedy="./"),
            Breaks("model: {id: ~/a}", "spec.model.id", "~/a"),
        ),
        (
            Spares("model: {id: a}"),
            Spares("model: {id: 'a/b:Q4_K_M'}"),
            Spares("model: {id: 's3://bucket/a/b'}"),
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
