"""Cases of the rules about extraConfig."""

from tests.unit.rules.case import Breaks, Case, Spares

_VOLUME = "volume: {persistentVolumeClaim: {claimName: a}}"

CASES = (
    Case(
        "extra-config-clash-with-wiring",
        (
            Breaks(
                f"transfer: {{embeddings: {{{_VOLUME}, extraConfig: {{shared_storage_path: /tmp/x}}}}}}",
                "spec.transfer.embeddings.extraConfig.shared_storage_path",
                "/tmp/x",
            ),
            Breaks(
                f"{{prefill: {{}}, transfer: {{kv: {{connector: ExampleConnector, {_VOLUME},"
                " extraConfig: {shared_storage_path: /tmp/x}}}}",
                "spec.transfer.kv.extraConfig.shared_storage_path",
                "/tmp/x",
            ),
        ),
        (Spares(f"transfer: {{embeddings: {{{_VOLUME}}}}}"),),
    ),
    Case(
        "extra-config-key-unknown",
        (
            Breaks(
                "transfer: {embeddings: {extraConfig: {consumer_ack_timeout: 3}}}",
                "spec.transfer.embeddings.extraConfig.consumer_ack_timeout",
                3,
                remedy="consumer_ack_timeout_s",
            ),
            Breaks(
                "{prefill: {}, transfer: {kv: {extraConfig: {kv.lease: 3}}}}",
                "spec.transfer.kv.extraConfig[kv.lease]",
                3,
            ),
            Breaks(
                "engine: {version: 0.30.0}\nencode: {args: [--enable-lora]}\ntransfer: {embeddings: "
                "{connector: ECMooncakeConnector, extraConfig: {cross_encoder_cache: true}}}",
                "spec.transfer.embeddings.extraConfig.cross_encoder_cache",
                True,
            ),
        ),
        (
            Spares("transfer: {embeddings: {extraConfig: {consumer_ack_timeout_s: 3}}}"),
            Spares("{prefill: {}, transfer: {kv: {connector: LMCacheConnectorV1, extraConfig: {anything: 3}}}}"),
        ),
    ),
)
