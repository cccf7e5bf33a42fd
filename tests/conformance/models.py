"""Configurations of small models, enough for vLLM to judge flags: it reads no weights for that."""

import json
from pathlib import Path
from typing import Any

CONTEXT = 4096


def _language(model_type: str, heads: int, kv_heads: int, **more: Any) -> dict[str, Any]:
    return {
        "model_type": model_type,
        "vocab_size": 320,
        "hidden_size": 32 * heads,
        "intermediate_size": 128,
        "num_hidden_layers": 4,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": CONTEXT,
        "bos_token_id": 257,
        "eos_token_id": 256,
        "hidden_act": "silu",
        **more,
    }


VISION_TOKENS = {"image_token_id": 262, "video_token_id": 263, "vision_start_token_id": 259, "vision_end_token_id": 260}
VISION = {"depth": 2, "num_heads": 2, "in_channels": 3, "spatial_merge_size": 2, "temporal_patch_size": 2}


def qwen2_vl(heads: int, kv_heads: int) -> dict[str, Any]:
    """Images and videos as metadata only from 0.28."""
    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]}
    return {
        "architectures": ["Qwen2VLForConditionalGeneration"],
        "model_type": "qwen2_vl",
        "dtype": "bfloat16",
        "text_config": _language("qwen2_vl_text", heads, kv_heads, rope_parameters=rope),
        "vision_config": {**VISION, "embed_dim": 32, "hidden_size": 32 * heads, "mlp_ratio": 2, "patch_size": 14},
        **VISION_TOKENS,
    }


def qwen3_vl(heads: int, kv_heads: int) -> dict[str, Any]:
    """As qwen2_vl; videos need timestamps too from 0.29."""
    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [6, 5, 5], "mrope_interleaved": True}
    vision: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "out_hidden_size": 32 * heads,
        "patch_size": 16,
    }
    vision |= {"num_position_embeddings": 256, "deepstack_visual_indexes": [0]}
    return {
        "architectures": ["Qwen3VLForConditionalGeneration"],
        "model_type": "qwen3_vl",
        "dtype": "bfloat16",
        "text_config": _language("qwen3_vl_text", heads, kv_heads, head_dim=32, rope_parameters=rope),
        "vision_config": {**VISION, **vision},
        **VISION_TOKENS,
    }


def qwen2(heads: int, kv_heads: int) -> dict[str, Any]:
    """Text only."""
    return {
        "architectures": ["Qwen2ForCausalLM"],
        "dtype": "bfloat16",
        **_language("qwen2", heads, kv_heads),
    }


MODELS: dict[str, dict[str, Any]] = {
    "qwen2-vl": qwen2_vl(2, 1),
    "qwen3-vl": qwen3_vl(2, 1),
    "qwen3-vl-6": qwen3_vl(6, 2),
    "qwen2-vl-16": qwen2_vl(16, 4),
    "qwen3-vl-16": qwen3_vl(16, 4),
    "text": qwen2(16, 4),
}
"""By name; the number is that of attention heads."""


def write(directory: Path) -> dict[str, Path]:
    """Write every model's folder below `directory`; name -> folder."""
    folders = {name: directory / name for name in MODELS}
    for name, folder in folders.items():
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(MODELS[name]), encoding="utf-8")
    return folders
