"""Cases of the rules about the model."""

from tests.unit.rules.case import Breaks, Case, Spares

_ARCHITECTURE = "spec.model.architecture"
_OLD = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: c}}}}"
_QWEN = "model: {architecture: Qwen3VLForConditionalGeneration}"
_CONFIG = {
    "architectures": ["Qwen3VLForConditionalGeneration"],
    "text_config": {"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": 4096},
}
_STRETCHED = {**_CONFIG, "text_config": {**_CONFIG["text_config"], "rope_scaling": {"rope_type": "yarn"}}}  # type: ignore[dict-item]

_LATENT = {**_CONFIG, "text_config": {**_CONFIG["text_config"], "kv_lora_rank": 512}}  # type: ignore[dict-item]
_CONTEXT = "spec.decode.args[0]"


def _context(size: int, *, tensor: int) -> str:
    return f"decode: {{parallelism: {{tensor: {tensor}}}, args: [--decode-context-parallel-size={size}]}}"


_LORA = '--default-mm-loras={"image":"/lora"}'
_LORAS = f"decode: {{args: ['{_LORA}']}}"


def _model(architecture: str, version: str = "0.33.0") -> str:
    return f"model: {{architecture: {architecture}}}\nengine: {{version: {version}}}\n"


CASES = (
    Case(
        "text-model-encoder",
        (
            Breaks(_model("Qwen2ForCausalLM"), _ARCHITECTURE, "Qwen2ForCausalLM", remedy="remove encode"),
            Breaks(_model("Qwen2ForCausalLM", "0.29.0") + _OLD, _ARCHITECTURE, "Qwen2ForCausalLM"),
        ),
        (Spares(_model("Qwen2ForCausalLM") + "encode: <absent>"), Spares(_QWEN)),
    ),
    Case(
        "text-model-encoder-idle",
        (Breaks(_model("Qwen2ForCausalLM", "0.28.0") + _OLD, _ARCHITECTURE, "Qwen2ForCausalLM"),),
        (Spares(_model("Qwen2VLForConditionalGeneration", "0.28.0") + _OLD),),
    ),
    Case(
        "architecture-unknown",
        (
            Breaks(_model("Qwen9VL"), _ARCHITECTURE, "Qwen9VL"),
            Breaks(
                _model("Qwen3VLForConditionalGenration"),
                _ARCHITECTURE,
                "Qwen3VLForConditionalGenration",
                remedy="Qwen3VLForConditionalGeneration",
            ),
        ),
        (Spares(_QWEN),),
    ),
    Case(
        "media-travel-twice",
        (
            Breaks(
                _model("LlavaForConditionalGeneration"), _ARCHITECTURE, "LlavaForConditionalGeneration", remedy="encode"
            ),
        ),
        (Spares(_model("LlavaForConditionalGeneration") + "encode: <absent>"), Spares(_QWEN)),
    ),
    Case(
        "media-loras-without-media",
        (Breaks(_model("Qwen2ForCausalLM") + f"encode: <absent>\n{_LORAS}", "spec.decode.args[0]", _LORA),),
        (
            Spares(_model("Qwen2VLForConditionalGeneration") + _LORAS),
            Spares(_model("Qwen2ForCausalLM") + "encode: <absent>\ndecode: {args: ['--default-mm-loras={}']}"),
        ),
    ),
    Case(
        "heads-not-divisible",
        (
            Breaks("decode: {parallelism: {tensor: 4}}", "spec.decode.parallelism.tensor", 4, config=_CONFIG),
            Breaks("encode: {parallelism: {tensor: 5}}", "spec.encode.parallelism.tensor", 5, config=_CONFIG),
        ),
        (
            Spares("decode: {parallelism: {tensor: 3}}", config=_CONFIG),
            Spares("decode: {parallelism: {tensor: 4}}"),
        ),
    ),
    Case(
        "context-too-long",
        (Breaks("decode: {args: [--max-model-len=8k]}", "spec.decode.args[0]", "--max-model-len=8k", config=_CONFIG),),
        (
            Spares("decode: {args: [--max-model-len=4K]}", config=_CONFIG),
            Spares("decode: {args: [--max-model-len=8k]}"),
            Spares("decode: {args: [--max-model-len=8k]}", config=_STRETCHED),
            Spares(
                "decode: {args: [--max-model-len=8k], env: [{name: VLLM_ALLOW_LONG_MAX_MODEL_LEN, value: '1'}]}",
                config=_CONFIG,
            ),
        ),
    ),
    Case(
        "prefill-tensor-above-kv-heads",
        (
            Breaks(
                "prefill: {parallelism: {tensor: 3}}", "spec.prefill.parallelism.tensor", 3, config=_CONFIG, remedy="2"
            ),
        ),
        (
            Spares("prefill: {parallelism: {tensor: 2}}", config=_CONFIG),
            Spares("prefill: {parallelism: {tensor: 3}}\ndecode: {parallelism: {tensor: 3}}", config=_CONFIG),
        ),
    ),
    Case(
        "decode-context-above-kv-heads",
        (
            Breaks(_context(2, tensor=2), _CONTEXT, "--decode-context-parallel-size=2", config=_CONFIG, remedy="lower"),
            Breaks(_context(2, tensor=6), _CONTEXT, "--decode-context-parallel-size=2", config=_CONFIG, remedy="divi"),
        ),
        (
            Spares(_context(3, tensor=6), config=_CONFIG),
            Spares(_context(1, tensor=2), config=_CONFIG),
            Spares(_context(2, tensor=2), config=_LATENT),
            Spares(_context(2, tensor=2)),
        ),
    ),
    Case(
        "encoder-budget-below-image",
        (
            Breaks(
                _QWEN + "\nencode: {args: [--max-num-batched-tokens=8192]}",
                "spec.encode.args[0]",
                "--max-num-batched-tokens=8192",
                remedy="max_pixels",
            ),
        ),
        (
            Spares(_QWEN + "\nencode: {args: [--max-num-batched-tokens=16384]}"),
            Spares("encode: {args: [--max-num-batched-tokens=8192]}"),
            Spares(
                _QWEN + "\nencode: {args: [--max-num-batched-tokens=8192, "
                "'--mm-processor-kwargs={\"max_pixels\": 1048576}']}"
            ),
        ),
    ),
)
