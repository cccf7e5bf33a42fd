"""What is known of the model without its weights: from `model.architecture`, or from a config.json at hand."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PATCH_UNITS = {
    "Qwen2VLForConditionalGeneration": 28,
    "Qwen2_5_VLForConditionalGeneration": 28,
    "Qwen3VLForConditionalGeneration": 32,
    "Qwen3VLMoeForConditionalGeneration": 32,
}
"""Side in pixels of the square that becomes one token (patch size x spatial merge size of the published models)."""
FULL_IMAGE_TOKENS = 16384
"""Of the same models: max_pixels of the published image processors (12,845,056 and 16,777,216) by that square."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """None where it is not known."""

    architecture: str | None = None
    heads: int | None = None
    """Attention heads of the language model."""
    kv_heads: int | None = None
    """None also where there are none to share out: latent attention (MLA)."""
    context: int | None = None
    """Longest sequence in tokens; None also where the configuration stretches it."""


def facts_of(architecture: str | None, config: Mapping[str, Any] | None = None) -> ModelFacts:
    """What a config.json says, and `architecture` where there is none. Never raises."""
    if config is None:
        return ModelFacts(architecture)
    names = config.get("architectures")
    named = names[0] if isinstance(names, list) and names and isinstance(names[0], str) else None
    text = config.get("text_config")
    text = text if isinstance(text, Mapping) else config
    heads = _count(text.get("num_attention_heads"))
    stretched = text.get("rope_scaling") or _stretches(text.get("rope_parameters"))
    return ModelFacts(
        architecture=named or architecture,
        heads=heads,
        kv_heads=None if text.get("kv_lora_rank") else _count(text.get("num_key_value_heads")) or heads,
        context=None if stretched else _count(text.get("max_position_embeddings")),
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _stretches(rope: Any) -> bool:
    return isinstance(rope, Mapping) and rope.get("rope_type", "default") not in ("default", "mrope")


def full_image_tokens(facts: ModelFacts, max_pixels: Any = None) -> int | None:
    """Tokens of one image of full size, where the architecture is one that is known here.

    `max_pixels` is the user's own bound among the processor's options.
    """
    unit = PATCH_UNITS.get(facts.architecture or "")
    if unit is None:
        return None
    pixels = _count(max_pixels)
    return FULL_IMAGE_TOKENS if pixels is None else min(FULL_IMAGE_TOKENS, pixels // (unit * unit))
