"""Cases of the rules about which roles and transfers go together."""

from tests.unit.rules.case import Breaks, Case, Spares

CASES = (
    Case(
        "encode-without-consumer",
        (
            Breaks("decode: <absent>", "spec.encode", {}, remedy="add decode"),
            Breaks("{encode: {replicas: 2}, decode: <absent>}", "spec.encode", {"replicas": 2}),
        ),
        (Spares(""),),
    ),
    Case(
        "prefill-without-decode",
        (
            Breaks("{prefill: {}, decode: <absent>}", "spec.prefill", {}, remedy="add decode"),
            Breaks("{prefill: {}, decode: <absent>, encode: <absent>}", "spec.prefill", {}),
        ),
        (Spares("prefill: {}"), Spares("{prefill: {}, encode: <absent>}")),
    ),
    Case(
        "decode-required",
        (Breaks("{encode: <absent>, decode: <absent>}", "spec.decode", None),),
        (Spares("encode: <absent>"),),
    ),
    Case(
        "kv-without-prefill",
        (
            Breaks("transfer: {kv: {connector: NixlConnector}}", "spec.transfer.kv.connector", "NixlConnector"),
            Breaks("transfer: {kv: {}}", "spec.transfer.kv", {}),
        ),
        (Spares("{prefill: {}, transfer: {kv: {connector: NixlConnector}}}"),),
    ),
    Case(
        "embeddings-without-encode",
        (
            Breaks(
                "{encode: <absent>, transfer: {embeddings: {connector: ECCPUConnector}}}",
                "spec.transfer.embeddings.connector",
                "ECCPUConnector",
            ),
            Breaks(
                "{encode: <absent>, transfer: {embeddings: {cacheSize: 4Gi}}}",
                "spec.transfer.embeddings",
                {"cacheSize": "4Gi"},
            ),
        ),
        (
            Spares("transfer: {embeddings: {connector: ECCPUConnector}}"),
            Spares(
                "{encode: <absent>, prefill: {}, transfer: {kv: {connector: ExampleConnector},"
                " embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}}"
            ),
        ),
    ),
    Case(
        "role-scaled-to-zero",
        (
            Breaks("decode: {replicas: 0}", "spec.decode.replicas", 0, remedy="suspend: true"),
            Breaks("encode: {replicas: 0}", "spec.encode.replicas", 0),
        ),
        (Spares("{decode: {replicas: 0}, suspend: true}"), Spares("decode: {scaling: {mode: External}}")),
    ),
)
