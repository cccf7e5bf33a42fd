"""Cases of the rule about flags that need another one."""

from tests.unit.rules.case import Breaks, Case, Spares


def _args(*words: str, more: str = "") -> str:
    return "decode: {args: [" + ", ".join(f"'{word}'" for word in words) + f"]{more}}}"


_TEXT = "model: {architecture: Qwen2ForCausalLM}\nencode: <absent>\n"
_FILES = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: c}}}}\n"
_OLD = "engine: {version: 0.28.0}\n" + _FILES
_PATH = "spec.decode.args[0]"
_PAIRS = (
    (("--enable-auto-tool-choice",), ("--tool-call-parser", "hermes")),
    (("--enable-log-outputs",), ("--enable-log-requests",)),
    (("--collect-detailed-traces", "all"), ("--otlp-traces-endpoint", "http://collector:4317")),
    (("--mm-shm-cache-max-object-size-mb", "64"), ("--mm-processor-cache-type", "shm")),
    (("--mm-encoder-fp8-scale-path", "/scales"), ("--mm-encoder-attn-dtype", "fp8")),
    (("--mm-encoder-fp8-scale-save-path", "/scales"), ("--mm-encoder-attn-dtype", "fp8")),
    (("--numa-bind-nodes", "0"), ("--numa-bind",)),
    (("--numa-bind-cpus", "0-3"), ("--numa-bind",)),
    (("--mamba-ssu-algorithm", "simple"), ("--mamba-backend", "flashinfer")),
    (("--enable-mamba-cache-stochastic-rounding",), ("--mamba-ssm-cache-dtype", "float16")),
    (("--offload-backend", "prefetch"), ("--offload-group-size", "2")),
    (("--return-sampling-mask",), ("--logprobs-mode", "processed_logprobs")),
    (("--per-request-spec-decode-metrics", "summary"), ("--speculative-config", '{"method": "ngram"}')),
    (("--ray-workers-use-nsight",), ("--distributed-executor-backend", "ray")),
    (("--enable-eplb",), ("--enable-expert-parallel",)),
    (("--eplb-config", '{"num_redundant_experts": 4}'), ("--enable-eplb", "--enable-expert-parallel")),
    (("--enable-elastic-ep",), ("--enable-eplb", "--enable-expert-parallel")),
)

CASES = (
    Case(
        "args-need",
        (
            *(Breaks(_args(*flag), _PATH, " ".join(flag)) for flag, _ in _PAIRS),
            Breaks(_args("--sse-keep-alive-interval", "-1"), _PATH, "--sse-keep-alive-interval -1"),
            Breaks(
                _args("--max-num-active-seqs", "2048", "--max-num-seqs", "1024"), _PATH, "--max-num-active-seqs 2048"
            ),
            *(
                Breaks(_args(flag, "0", "--enable-lora"), _PATH, f"{flag} 0")
                for flag in ("--max-loras", "--max-lora-cls-labels")
            ),
            Breaks(
                _args("--max-cpu-loras", "2", "--max-loras", "4", "--enable-lora"),
                _PATH,
                "--max-cpu-loras 2",
            ),
            Breaks(_args("--logits-processors", "a:B", "None"), _PATH, "--logits-processors a:B None"),
            *(Breaks(_args(f"--max-model-len={length}"), _PATH, f"--max-model-len={length}") for length in (-5, 0)),
            Breaks(_args("--max-num-seqs", "256", "--max-num-batched-tokens", "64"), _PATH, "--max-num-seqs 256"),
            Breaks(_args("--enable-fault-tolerance"), _PATH, "--enable-fault-tolerance"),
            Breaks(_args("--decode-context-parallel-size", "2"), _PATH, "--decode-context-parallel-size 2"),
            Breaks(_OLD + _args("--dcp-comm-backend", "a2a"), _PATH, "--dcp-comm-backend a2a"),
            Breaks(_args("--distributed-executor-backend", "mpi"), _PATH, "--distributed-executor-backend mpi"),
            *(
                Breaks(_args("--default-mm-loras", value, "--enable-lora"), _PATH, f"--default-mm-loras {value}")
                for value in ("[]", '{"image": 1}')
            ),
            *(
                Breaks(_args("--reasoning-effort-map", value), _PATH, f"--reasoning-effort-map {value}")
                for value in ('{"image": "x"}', '{"low": 1}', "[]")
            ),
            Breaks(_args("--show-hidden-metrics-for-version", "-"), _PATH, "--show-hidden-metrics-for-version -"),
            Breaks(_args("--enable-per-request-metrics", "--disable-log-stats"), _PATH, "--enable-per-request-metrics"),
        ),
        (
            *(Spares(_args(*flag, *other)) for flag, other in _PAIRS if flag[0] != "--mm-shm-cache-max-object-size-mb"),
            Spares(_args("--mm-shm-cache-max-object-size-mb", "128")),
            Spares(_args("--no-enable-auto-tool-choice")),
            Spares(_TEXT + _args("--mm-encoder-fp8-scale-path", "/scales")),
            Spares(_args("--logits-processors", "a:B", "c:D")),
            Spares(_args("--no-enable-fault-tolerance")),
            Spares(_args("--max-model-len=-1")),
            Spares(_args("--max-num-seqs", "64", "--max-num-batched-tokens", "64")),
            Spares(_args("--decode-context-parallel-size", "2", more=", parallelism: {tensor: 4}")),
            Spares(_args("--dcp-comm-backend", "a2a")),
            Spares(_OLD + _args("--dcp-comm-backend", "ag_rs")),
            Spares(_OLD + _args("-dcp", "2", "--dcp-comm-backend", "a2a", more=", parallelism: {tensor: 4}")),
            Spares(_args("--distributed-executor-backend", "own.module.Executor")),
            Spares(_args("--default-mm-loras", "[]")),
            Spares(_args("--default-mm-loras", '{"image": "/lora"}', "--enable-lora")),
            Spares(_args("--show-hidden-metrics-for-version=0.32")),
            Spares(_args("--max-num-active-seqs", "2048")),
            Spares(_args("--max-loras", "0")),
            Spares(_args("--max-cpu-loras", "0", "--enable-lora")),
            Spares(_args("--offload-backend", "uva")),
            Spares(_args("--reasoning-effort-map", '{"low": "brief"}')),
        ),
    ),
    Case(
        "mamba-block-without-prefix-caching",
        (
            Breaks(_args("--mamba-block-size", "16", "--no-enable-prefix-caching"), _PATH, "--mamba-block-size 16"),
            Breaks("encode: {args: [--mamba-block-size=16]}", "spec.encode.args[0]", "--mamba-block-size=16"),
        ),
        (Spares(_args("--mamba-block-size", "16")),),
    ),
    Case(
        "tool-parser-unknown",
        (
            Breaks(
                _args("--tool-call-parser", "hermez", "--enable-auto-tool-choice"),
                _PATH,
                "--tool-call-parser hermez",
                remedy="hermes",
            ),
        ),
        (
            Spares(_args("--tool-call-parser", "hermez")),
            Spares(_args("--tool-call-parser", "own", "--enable-auto-tool-choice", "--tool-parser-plugin", "/own.py")),
        ),
    ),
)
