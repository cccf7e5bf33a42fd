"""Cases of the rules about the transfer of KV blocks."""

from tests.unit.rules.case import Breaks, Case, Spares

_CONNECTOR = "spec.transfer.kv.connector"

CASES = (
    Case(
        "kv-connector-unknown",
        (
            Breaks(
                "{prefill: {}, transfer: {kv: {connector: nixlconnector}}}",
                _CONNECTOR,
                "nixlconnector",
                remedy="use NixlConnector",
            ),
            Breaks(
                "{prefill: {}, transfer: {kv: {connector: P2pNcclConnector}}}",
                _CONNECTOR,
                "P2pNcclConnector",
            ),
            Breaks("{prefill: {}, transfer: {kv: {connector: ECCPUConnector}}}", _CONNECTOR, "ECCPUConnector"),
            Breaks(
                "{prefill: {}, engine: {version: 0.29.0}, transfer: {kv: {connector: HiSparseConnector},"
                " embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}}",
                _CONNECTOR,
                "HiSparseConnector",
                remedy="0.30",
            ),
        ),
        (
            Spares("{prefill: {}, transfer: {kv: {connector: MooncakeConnector}}}"),
            Spares("{prefill: {}, transfer: {kv: {connector: LMCacheConnectorV1}}}"),
        ),
    ),
    Case(
        "prefill-decode-device",
        (
            Breaks("prefill: {device: {type: ROCm}}", "spec.prefill.device.type", "ROCm"),
            Breaks("prefill: {device: {type: CPU}}", "spec.prefill.device.type", "CPU"),
            Breaks("{prefill: {}, decode: {device: {type: CPU}}}", "spec.decode.device.type", "CPU"),
            Breaks(
                "{device: {type: ROCm}, prefill: {}, decode: {device: {type: CUDA}}}",
                "spec.decode.device.type",
                "CUDA",
            ),
        ),
        (
            Spares("{device: {type: ROCm}, prefill: {}}"),
            Spares("{prefill: {device: {type: CUDA, product: A}}, decode: {device: {product: B}}}"),
            Spares("{prefill: {}, encode: {device: {type: ROCm}}}"),
        ),
    ),
    Case(
        "kv-handshake-check-off",
        (
            Breaks(
                "prefill: {}\ntransfer: {kv: {extraConfig: {enforce_handshake_compat: false}}}",
                "spec.transfer.kv.extraConfig.enforce_handshake_compat",
                False,
            ),
        ),
        (Spares("prefill: {}\ntransfer: {kv: {extraConfig: {enforce_handshake_compat: true}}}"),),
    ),
)
