"""Cases of the rules about vLLM's model runners."""

from tests.unit.rules.case import Breaks, Case, Spares

_FILES = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: c}}}}\n"
"""A connector that does not ask for a model runner."""
_V1 = ", env: [{name: VLLM_USE_V2_MODEL_RUNNER, value: '0'}]"
_V2 = ", env: [{name: VLLM_USE_V2_MODEL_RUNNER, value: '1'}]"
_PIPELINE = ", parallelism: {pipeline: 2}"
_PATH = "spec.decode.args[0]"
_LAST = (
    ("0.28.0", ("--enable-prompt-embeds",)),
    ("0.29.0", ("--kv-sharing-fast-prefill",)),
    ("0.30.0", ("--logits-processors", "a:B")),
    ("0.31.0", ("--mamba-cache-mode", "all")),
)
"""The last release whose V2 runner does not support a flag."""


def _args(*words: str, version: str = "0.33.0", more: str = "") -> str:
    line = "decode: {args: [" + ", ".join(f"'{word}'" for word in words) + f"]{more}}}"
    return f"engine: {{version: {version}}}\n{line}"


CASES = (
    Case(
        "v2-runner-needed",
        (
            Breaks(_FILES + _args("--enable-trace-replay", more=_V1), _PATH, "--enable-trace-replay"),
            Breaks(
                _FILES + _args("--enable-trace-replay", more=", device: {type: CPU}"), _PATH, "--enable-trace-replay"
            ),
            Breaks(
                _FILES + _args("--return-sampling-mask", "--logprobs-mode=processed_logprobs", more=_V1),
                _PATH,
                "--return-sampling-mask",
            ),
            Breaks(_FILES + _args("--async-scheduling", more=_V1 + _PIPELINE), _PATH, "--async-scheduling"),
        ),
        (
            Spares(_args("--enable-trace-replay")),
            Spares(_args("--async-scheduling", more=_PIPELINE)),
            Spares(_FILES + _args("--async-scheduling", more=_V1)),
            Spares(_FILES + _args("--async-scheduling", version="0.30.0", more=_V1 + _PIPELINE)),
            Spares(_FILES + _args("--no-enable-trace-replay", more=_V1)),
        ),
    ),
    Case(
        "v1-runner-needed",
        (
            *(Breaks(_FILES + _args(*flag, version=last, more=_V2), _PATH, " ".join(flag)) for last, flag in _LAST),
            Breaks(
                _args("--mamba-cache-mode=all", version="0.30.0"), _PATH, "--mamba-cache-mode=all", remedy="connector"
            ),
        ),
        (
            *(Spares(_FILES + _args(*flag, version=last)) for last, flag in _LAST),
            Spares(_FILES + _args("--mamba-cache-mode=all", version="0.29.0", more=_V2)),
            Spares(_FILES + _args("--runner", "draft", version="0.28.0", more=_V2)),
        ),
    ),
)
