"""Cases of the rules about the settings of ECMooncakeConnector."""

from tests.unit.rules.case import Breaks, Case, Spares


def _extra(extra: str, more: str = "") -> str:
    return f"{more}\ntransfer: {{embeddings: {{connector: ECMooncakeConnector, extraConfig: {extra}}}}}"


_030, _031 = "engine: {version: 0.30.0}", "engine: {version: 0.31.0}"
_PATH = "spec.transfer.embeddings.extraConfig."
_CROSS = _PATH + "cross_encoder_cache"

CASES = (
    Case(
        "mooncake-setting",
        (
            Breaks(_extra("{control_timeout_s: 0}"), _PATH + "control_timeout_s", 0),
            Breaks(_extra("{push_wait_timeout_s: soon}"), _PATH + "push_wait_timeout_s", "soon"),
            Breaks(_extra("{store_max_pending_items: 1.5}"), _PATH + "store_max_pending_items", 1.5),
            Breaks(_extra("{store_max_pending_bytes: true}"), _PATH + "store_max_pending_bytes", True),
            Breaks(_extra("{control_timeout_s: 0}", _030), _PATH + "control_timeout_s", 0),
        ),
        (Spares(_extra("{control_timeout_s: '2.5', store_max_pending_items: 8}")),),
    ),
    Case(
        "cross-encoder-cache",
        (
            Breaks(_extra("{cross_encoder_cache: 'yes'}"), _CROSS, "yes"),
            Breaks(_extra("{cross_encoder_cache: true}", "encode: {args: [--mm-processor-cache-gb=0]}"), _CROSS, True),
            Breaks(_extra("{cross_encoder_cache: true}", "encode: {args: [--enable-lora]}"), _CROSS, True),
            Breaks(
                _extra("{cross_encoder_cache: true}", "encode: {env: [{name: VLLM_USE_V2_MODEL_RUNNER, value: '0'}]}"),
                _CROSS,
                True,
            ),
            Breaks(_extra("{cross_encoder_cache: 'yes'}", _031), _CROSS, "yes"),
        ),
        (
            Spares(_extra("{cross_encoder_cache: true}")),
            Spares(_extra("{cross_encoder_cache: false}", "encode: {args: [--enable-lora]}")),
        ),
    ),
)
