"""Rules about the model, where its architecture or its config.json is known. An unknown model is never refused."""

from collections.abc import Iterator

from epd_operator.api.finding import Severity
from epd_operator.api.role import Role
from epd_operator.engine.command import ENCODER_TOKEN_BUDGET
from epd_operator.engine.model_facts import full_image_tokens
from epd_operator.engine.release import Release
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

PRODUCER_CHECKED_SINCE = Release(0, 29)
_ARCHITECTURE = "spec.model.architecture"


def _place(wiring: Wiring) -> tuple[str, str]:
    """Path and value that tell the model."""
    model = wiring.deployment.spec.model
    return (_ARCHITECTURE, model.architecture) if model.architecture else ("spec.model.id", model.id)


@rule(
    id="text-model-encoder",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="encode goes only with a multimodal model.",
    why='vLLM refuses to start: "An EC producer-only instance requires a multimodal model".',
    source="vLLM 0.29 to 0.33 config/vllm.py, _resolve_mm_encoder_only",
    since=PRODUCER_CHECKED_SINCE,
    proved=True,
    needs_release=True,
)
def text_model_encoder(wiring: Wiring) -> Iterator[Broken]:
    """An encoder of an architecture that the release registers without media."""
    yield from _encoder_of_text_model(wiring, "the encoder refuses to start")


@rule(
    id="text-model-encoder-idle",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="encode goes only with a multimodal model.",
    why="vLLM 0.28 starts the encoder, and it never has anything to encode.",
    source="vLLM 0.28, asked",
    until=PRODUCER_CHECKED_SINCE,
    needs_release=True,
    proved=True,
)
def text_model_encoder_idle(wiring: Wiring) -> Iterator[Broken]:
    """The same in the release that does not check it."""
    yield from _encoder_of_text_model(wiring, "the encoder has nothing to encode, and says no word")


def _encoder_of_text_model(wiring: Wiring, then: str) -> Iterator[Broken]:
    architecture = wiring.model.architecture
    if Role.ENCODE in wiring.instances and wiring.capabilities.multimodal(architecture or "") is False:
        path, value = _place(wiring)
        message = f"vLLM {wiring.release} knows {architecture} as a model without media, so {then}"
        yield Broken(path, value, message, "remove encode, or name a multimodal model")


@rule(
    id="architecture-unknown",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="model.architecture is one that the release registers.",
    why="Rules about the model cannot be checked; vLLM may still run it by its Transformers backend.",
    source="vLLM model_executor/models/registry.py, each release",
    needs_release=True,
)
def architecture_unknown(wiring: Wiring) -> Iterator[Broken]:
    """An architecture as written that is not registered."""
    written = wiring.deployment.spec.model.architecture
    if written is not None and wiring.capabilities.multimodal(written) is None:
        near = wiring.capabilities.nearest_architecture(written)
        message = f"vLLM {wiring.release} registers no such architecture, so no rule about the model is checked"
        remedy = f"write {near}, if that is meant" if near else "check it against the model's config.json"
        yield Broken(_ARCHITECTURE, written, message, remedy)


@rule(
    id="media-travel-twice",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="With encode, the model is one whose media can be replaced by metadata.",
    why="Otherwise the media travel to the consumers too, which preprocess them again and only save the encoding.",
    source="vLLM's models, each release: embedding_fields of their data parsers",
    needs_release=True,
)
def media_travel_twice(wiring: Wiring) -> Iterator[Broken]:
    """A multimodal architecture whose parser takes no metadata-only items."""
    architecture = wiring.model.architecture or ""
    if Role.ENCODE not in wiring.instances or wiring.capabilities.multimodal(architecture) is not True:
        return
    if architecture not in wiring.capabilities.metadata_items:
        path, value = _place(wiring)
        message = f"vLLM {wiring.release} takes no metadata for {architecture}, so media travel to every role"
        yield Broken(path, value, message, "keep encode only if encoding is what costs most")


@rule(
    id="media-loras-without-media",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="--default-mm-loras goes only with a multimodal model.",
    why="vLLM refuses to start.",
    source="vLLM 0.28 to 0.33 engine/arg_utils.py, create_engine_config",
    proved=True,
    needs_release=True,
)
def media_loras_without_media(wiring: Wiring) -> Iterator[Broken]:
    """LoRAs for media of an architecture that the release registers without media."""
    architecture = wiring.model.architecture or ""
    if wiring.capabilities.multimodal(architecture) is not False:
        return
    for instance in wiring.instances.values():
        given = instance.args.last("--default-mm-loras")
        if given is not None and instance.user_value("--default-mm-loras"):
            message = f"vLLM {wiring.release} knows {architecture} as a model without media (vLLM refuses to start)"
            yield Broken.at(instance, given, message, "remove it")


@rule(
    id="heads-not-divisible",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="Tensor parallelism divides the model's attention heads.",
    why="vLLM refuses to start.",
    source="vLLM 0.33 config/model.py, verify_with_parallel_config",
    proved=True,
)
def heads_not_divisible(wiring: Wiring) -> Iterator[Broken]:
    """A degree that does not divide the heads, where they are known."""
    heads = wiring.model.heads
    for role, instance in wiring.instances.items():
        if heads is not None and heads % instance.tensor:
            message = f"the model has {heads} attention heads, which it must divide (vLLM refuses to start)"
            yield Broken(f"spec.{role}.parallelism.tensor", instance.tensor, message, f"use a divisor of {heads}")


@rule(
    id="context-too-long",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="--max-model-len is at most what the model's configuration says.",
    why="vLLM refuses to start, unless VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 is set.",
    source="vLLM 0.33 config/model.py, _get_and_verify_max_len",
    proved=True,
)
def context_too_long(wiring: Wiring) -> Iterator[Broken]:
    """A longer context than the model's, where that is known."""
    context = wiring.model.context
    for instance in wiring.instances.values():
        length, given = instance.user_value("--max-model-len"), instance.args.last("--max-model-len")
        allowed = instance.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN")
        if context is None or given is None or not isinstance(length, int) or length <= context:
            continue
        if not (allowed and allowed.variable.value == "1"):
            message = f"the model's longest sequence is {context} tokens (vLLM refuses to start)"
            yield Broken.at(instance, given, message, f"lower it to {context} or less")


@rule(
    id="prefill-tensor-above-kv-heads",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="With more tensor parallelism in prefill than in decode, prefill's is at most the number of KV heads.",
    why="The NIXL hand-shake between the two ends with an assertion, except for MLA and Mamba models.",
    source="vLLM 0.33 nixl/base_worker.py:2729, read",
)
def prefill_tensor_above_kv_heads(wiring: Wiring) -> Iterator[Broken]:
    """KV heads that would be replicated on the sending side."""
    prefill, decode = wiring.instances.get(Role.PREFILL), wiring.instances.get(Role.DECODE)
    kv_heads = wiring.model.kv_heads
    if prefill is None or decode is None or kv_heads is None or wiring.kv is None:
        return
    if "Nixl" in wiring.kv.connector and prefill.tensor > decode.tensor and prefill.tensor > kv_heads:
        message = f"the model has {kv_heads} KV heads, and decode with {decode.tensor} cannot read replicated ones"
        remedy = f"lower it to {kv_heads} or to decode's {decode.tensor}"
        yield Broken("spec.prefill.parallelism.tensor", prefill.tensor, message, remedy)


@rule(
    id="decode-context-above-kv-heads",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="--decode-context-parallel-size is at most the copies of a KV head, and divides the query heads of each.",
    why="vLLM refuses to start, except for models with latent attention.",
    source="vLLM 0.28 to 0.33 config/model.py, verify_with_parallel_config",
    proved=True,
)
def decode_context_above_kv_heads(wiring: Wiring) -> Iterator[Broken]:
    """More ranks for one context than tensor parallelism makes copies of each KV head, where the heads are known."""
    heads, kv_heads = wiring.model.heads, wiring.model.kv_heads
    for instance in wiring.instances.values():
        flag = "--decode-context-parallel-size"
        size, given = instance.user_value(flag), instance.args.last(flag)
        if given is None or not isinstance(size, int) or size <= 1 or heads is None or kv_heads is None:
            continue
        copies, queries = max(1, instance.tensor // kv_heads), heads // kv_heads
        if size > copies:
            message = f"{kv_heads} KV heads and tensor {instance.tensor} allow at most {copies} (vLLM refuses to start)"
            yield Broken.at(instance, given, message, "lower it, or raise tensor")
        elif queries % size:
            message = f"it does not divide the {queries} query heads of each KV head (vLLM refuses to start)"
            yield Broken.at(instance, given, message, "use a divisor, or remove it")


@rule(
    id="encoder-budget-below-image",
    severity=Severity.WARNING,
    kind=Kind.SILENT,
    what="--max-num-batched-tokens of an encoder holds one image of full size.",
    why="It is also the encoder's cache and the largest item: a larger image is answered with an error.",
    source="vLLM 0.33 v1/core/encoder_cache_manager.py; published image processors of Qwen2-VL and Qwen3-VL",
    proved=True,
)
def encoder_budget_below_image(wiring: Wiring) -> Iterator[Broken]:
    """A budget below what one image may take, for architectures whose image sizes are known."""
    encode = wiring.instances.get(Role.ENCODE)
    given = encode.args.last("--max-num-batched-tokens") if encode else None
    if encode is None or given is None:
        return
    options = encode.user_value("--mm-processor-kwargs")
    tokens = full_image_tokens(wiring.model, options.get("max_pixels") if isinstance(options, dict) else None)
    budget = encode.user_value("--max-num-batched-tokens")
    if tokens is not None and isinstance(budget, int) and budget < tokens:
        message = f"one image of full size takes {tokens} tokens, and larger ones than the budget are refused"
        remedy = f"remove it (the operator writes {ENCODER_TOKEN_BUDGET}), or bound max_pixels in --mm-processor-kwargs"
        yield Broken.at(encode, given, message, remedy)


RULES = (
    text_model_encoder,
    text_model_encoder_idle,
    architecture_unknown,
    media_travel_twice,
    media_loras_without_media,
    heads_not_divisible,
    context_too_long,
    prefill_tensor_above_kv_heads,
    decode_context_above_kv_heads,
    encoder_budget_below_image,
)
