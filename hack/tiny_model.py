"""Write a tiny multimodal checkpoint with random weights: the whole path of a real model in under one megabyte.

    $(python hack/engine_env.py --python) hack/tiny_model.py DIRECTORY [--architecture qwen2-vl|qwen3-vl] [--seed 0]

Runs in the environment of ``engine_env.py``, which has torch and transformers. The same arguments give the same files.
The answers are noise, but they depend on every token and every pixel, so two ways of serving the model can be compared
by their token ids. The vocabulary is the 256 bytes and the special tokens: any text can be asked, any answer printed.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

ARCHITECTURES = ("qwen2-vl", "qwen3-vl")
SPECIAL_TOKENS = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|vision_pad|>",
    "<|image_pad|>",
    "<|video_pad|>",
)
VOCABULARY_SIZE = 320
CONTEXT_LENGTH = 4096
# Wide enough that greedy answers differ from one image to the next.
WEIGHT_DEVIATION = 0.25
MAX_PATCHES_PER_SIDE = 8

CHAT_TEMPLATE = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message['role'] + '\\n' }}
    {%- if message['content'] is string %}
        {{- message['content'] }}
    {%- else %}
        {%- for part in message['content'] %}
            {%- if part['type'] in ('image', 'image_url') %}
                {{- '<|vision_start|><|image_pad|><|vision_end|>' }}
            {%- elif part['type'] in ('video', 'video_url') %}
                {{- '<|vision_start|><|video_pad|><|vision_end|>' }}
            {%- elif 'text' in part %}
                {{- part['text'] }}
            {%- endif %}
        {%- endfor %}
    {%- endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


def make_tokenizer() -> Any:
    """A tokenizer that maps each byte to one token."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = {symbol: index for index, symbol in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    # All of them are added here, since the order in which transformers adds missing ones is its own business.
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(list(SPECIAL_TOKENS))
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL_TOKENS[1:]),
        model_max_length=CONTEXT_LENGTH,
        chat_template=CHAT_TEMPLATE,
    )


def language_config(tokenizer: Any) -> dict[str, Any]:
    """Two small layers; the same for both architectures."""
    return {
        "vocab_size": VOCABULARY_SIZE,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "max_position_embeddings": CONTEXT_LENGTH,
        "bos_token_id": tokenizer.convert_tokens_to_ids("<|endoftext|>"),
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
        "tie_word_embeddings": False,
    }


def media_token_ids(tokenizer: Any) -> dict[str, int]:
    """The tokens by which a prompt says where its media are."""
    names = {
        "image_token_id": "<|image_pad|>",
        "video_token_id": "<|video_pad|>",
        "vision_start_token_id": "<|vision_start|>",
        "vision_end_token_id": "<|vision_end|>",
    }
    return {field: tokenizer.convert_tokens_to_ids(token) for field, token in names.items()}


def make_qwen2_vl(tokenizer: Any) -> tuple[Any, Any]:
    """The model and its processor: patches of 14 pixels, merged by two."""
    import transformers

    rope = {"rope_type": "default", "rope_theta": 1e6, "mrope_section": [4, 6, 6]}
    config = transformers.Qwen2VLConfig(
        text_config=language_config(tokenizer) | {"rope_parameters": rope},
        vision_config={
            "depth": 2,
            "embed_dim": 32,
            "hidden_size": 64,
            "num_heads": 2,
            "mlp_ratio": 2,
            "patch_size": 14,
        },
        **media_token_ids(tokenizer),
    )
    pixels = {"min_pixels": 28**2, "max_pixels": (28 * MAX_PATCHES_PER_SIDE) ** 2}
    processor = transformers.Qwen2VLProcessor(
        transformers.Qwen2VLImageProcessor(**pixels),
        tokenizer,
        transformers.Qwen2VLVideoProcessor(**pixels),
        chat_template=CHAT_TEMPLATE,
    )
    return transformers.Qwen2VLForConditionalGeneration(config), processor


def make_qwen3_vl(tokenizer: Any) -> tuple[Any, Any]:
    """The model and its processor: patches of 16 pixels, merged by two, with one deep-stack layer."""
    import transformers

    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [6, 5, 5], "mrope_interleaved": True}
    vision = {"depth": 2, "hidden_size": 32, "intermediate_size": 64, "out_hidden_size": 64, "num_heads": 2}
    config = transformers.Qwen3VLConfig(
        text_config=language_config(tokenizer) | {"head_dim": 32, "rope_parameters": rope},
        vision_config=vision | {"patch_size": 16, "num_position_embeddings": 256, "deepstack_visual_indexes": [0]},
        **media_token_ids(tokenizer),
    )
    pixels = {"min_pixels": 32**2, "max_pixels": (32 * MAX_PATCHES_PER_SIDE) ** 2}
    processor = transformers.Qwen3VLProcessor(
        transformers.Qwen2VLImageProcessor(patch_size=16, **pixels),
        tokenizer,
        transformers.Qwen3VLVideoProcessor(),
        chat_template=CHAT_TEMPLATE,
    )
    return transformers.Qwen3VLForConditionalGeneration(config), processor


def write_model(directory: Path, architecture: str, seed: int) -> None:
    """Write the checkpoint into `directory`, which must not exist or be empty; it appears only when it is whole."""
    import torch

    torch.manual_seed(seed)
    tokenizer = make_tokenizer()
    model, processor = {"qwen2-vl": make_qwen2_vl, "qwen3-vl": make_qwen3_vl}[architecture](tokenizer)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, WEIGHT_DEVIATION)
    model = model.to(torch.float32)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        made = Path(scratch) / directory.name
        for part in (model, tokenizer, processor):
            part.save_pretrained(made)
        made.chmod(0o755)
        # Weights are saved for their owner alone; in a pod another user reads them.
        for file in made.iterdir():
            file.chmod(0o644)
        try:
            made.rename(directory)
        except OSError:
            # Another run may have been faster; what it made is the same.
            if not (directory / "config.json").exists():
                raise


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path, help="where to write it; a checkpoint that is there already stays")
    parser.add_argument("--architecture", choices=ARCHITECTURES, default=ARCHITECTURES[0])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if (arguments.directory / "config.json").exists():
        return 0
    write_model(arguments.directory.resolve(), arguments.architecture, arguments.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
