"""Cases of the rules about flags that vLLM's parser refuses."""

from tests.unit.rules.case import Breaks, Case, Spares


def _args(*words: str, version: str = "0.33.0") -> str:
    return f"engine: {{version: {version}}}\ndecode: {{args: [" + ", ".join(f"'{word}'" for word in words) + "]}"


_PATH = "spec.decode.args[0]"

_TEXT = "model: {architecture: Qwen2ForCausalLM}\nencode: <absent>\n"

CASES = (
    Case(
        "args-unknown",
        (
            Breaks(_args("--no-such-flag"), _PATH, "--no-such-flag", remedy="remove it"),
            Breaks(_args("--max-model-lenn=4096"), _PATH, "--max-model-lenn=4096", remedy="write --max-model-len"),
            Breaks(_args("--max_modle_len", "4096"), _PATH, "--max_modle_len", remedy="write --max-model-len"),
            Breaks(_args("--max", "1"), _PATH, "--max", remedy="in full"),
            Breaks(_args("--enable-shm-tensor-arena", version="0.31.0"), _PATH, "--enable-shm-tensor-arena"),
            Breaks("engine: {args: [-zz]}", "spec.engine.args[0]", "-zz"),
        ),
        (Spares(_args("--max-model", "4096")), Spares(_args("--enable-shm-tensor-arena", version="0.32.0"))),
    ),
    Case(
        "args-malformed",
        (
            Breaks(_args("--max-model-len"), _PATH, "--max-model-len", remedy="add the value"),
            Breaks(_args("--enforce-eager=true"), _PATH, "--enforce-eager=true", remedy="alone"),
            Breaks(_args("--seed", "1", "2"), "spec.decode.args[2]", "2", remedy="put its flag before it"),
            Breaks(_args("--max-model-len 4096"), _PATH, "--max-model-len 4096", remedy="as two items"),
            Breaks(_args('"--seed=1"'), _PATH, '"--seed=1"', remedy="without quotes"),
            Breaks(_args("--enforce-eager", "true"), "spec.decode.args[1]", "true", remedy="takes no value"),
        ),
        (Spares(_args("--enforce-eager")), Spares(_args("--ignore-patterns", "a", "b"))),
    ),
    Case(
        "args-value",
        (
            Breaks(_args("--seed", "x"), _PATH, "--seed x"),
            Breaks(_args("--mm-processor-cache-gb=-1"), _PATH, "--mm-processor-cache-gb=-1"),
            Breaks(_args("--gpu-memory-utilization=1.2"), _PATH, "--gpu-memory-utilization=1.2"),
            Breaks(_args("--mm-hasher-algorithm", "blake2"), _PATH, "--mm-hasher-algorithm blake2", remedy="blake3"),
            Breaks(_args("--limit-mm-per-prompt", "{image:1}"), _PATH, "--limit-mm-per-prompt {image:1}"),
            Breaks(_args("--compilation-config.moed", "3"), _PATH, "--compilation-config.moed 3", remedy="mode"),
            Breaks(_args("--video-pruning-rate", "nan"), _PATH, "--video-pruning-rate nan"),
            Breaks(_args('--override-generation-config={"a":8k}'), _PATH, '--override-generation-config={"a":8k}'),
            Breaks(_args('--kv-events-config={"hwm":"x"}'), _PATH, '--kv-events-config={"hwm":"x"}'),
        ),
        (
            Spares(_args("--max-model-len", "8k")),
            Spares(_args("--gpu-memory-utilization", "1")),
            Spares(_TEXT + _args("--mm-processor-cache-gb=-1")),
            Spares(_TEXT + _args("--video-pruning-rate", "1")),
            Spares(_args("--compilation-config", '{"max_cudagraph_capture_size": 8k}')),
        ),
    ),
    Case(
        "args-help",
        (
            Breaks(_args("-h"), _PATH, "-h"),
            Breaks("engine: {args: [--help]}", "spec.engine.args[0]", "--help"),
        ),
        (Spares(_args("--hf-token")),),
    ),
    Case(
        "args-config-ignored",
        (Breaks(_args("--config=/etc/vllm.yaml"), _PATH, "--config=/etc/vllm.yaml", remedy="two items"),),
        (Spares(_args("--config-format", "hf")),),
    ),
    Case(
        "args-config-unchecked",
        (Breaks(_args("--config", "/etc/vllm.yaml"), _PATH, "--config /etc/vllm.yaml", remedy="args"),),
        (Spares(_args("--config-format", "hf")),),
    ),
    Case(
        "args-deprecated",
        (Breaks(_args("--disable-cascade-attn"), _PATH, "--disable-cascade-attn", remedy="remove"),),
        (Spares(_args("--disable-cascade-attn", version="0.30.0")),),
    ),
)
