"""Cases of the rules about secrets in plain sight."""

from tests.unit.rules.case import Breaks, Case, Spares

CASES = (
    Case(
        "args-secret",
        (
            Breaks(
                "engine: {args: [--hf-token, hf_abc]}", "spec.engine.args[0]", "--hf-token", remedy="tokenSecretRef"
            ),
            Breaks("decode: {args: [--hf_token=hf_abc]}", "spec.decode.args[0]", "--hf-token"),
        ),
        (Spares("engine: {args: [--hf-token]}"),),
    ),
    Case(
        "env-secret",
        (
            Breaks(
                "engine: {env: [{name: HF_TOKEN, value: hf_abc}]}",
                "spec.engine.env[0]",
                "HF_TOKEN",
                remedy="tokenSecretRef",
            ),
            Breaks(
                "decode: {env: [{name: S3_SECRET_ACCESS_KEY, value: abc}]}",
                "spec.decode.env[0]",
                "S3_SECRET_ACCESS_KEY",
                remedy="secretKeyRef",
            ),
        ),
        (
            Spares("engine: {env: [{name: HF_TOKEN, valueFrom: {secretKeyRef: {name: a, key: b}}}]}"),
            Spares("engine: {env: [{name: VLLM_MAX_BAD_WORDS_TOTAL_TOKENS, value: '4'}]}"),
        ),
    ),
)
