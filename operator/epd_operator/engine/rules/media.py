"""Rules about how roles treat media: what vLLM accepts on each alone and is wrong between them."""

import json
from collections.abc import Iterator
from typing import Any

from epd_operator.api.finding import Severity
from epd_operator.api.role import Role
from epd_operator.engine.instance import Instance
from epd_operator.engine.release import Release
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

HASHED_MEDIA_IO_SINCE = Release(0, 30)
EXPLICIT_UUIDS_KEPT_SINCE = Release(0, 30)
TRUST_SINCE = Release(0, 31)


def _given(instance: Instance, flag: str) -> tuple[str, str] | None:
    """Where and how a flag was written."""
    argument = instance.args.last(flag)
    return None if argument is None else (instance.arg_path(argument), instance.written(argument))


def _differing(wiring: Wiring, flag: str, default: Any) -> tuple[Instance, Instance] | None:
    """Two roles for which a flag has different values: the first is one that names it."""
    if Role.ENCODE not in wiring.instances:
        return None
    values = {role: _plain(instance.user_value(flag), default) for role, instance in wiring.instances.items()}
    encode = wiring.instances[Role.ENCODE]
    for role, instance in wiring.instances.items():
        if values[role] != values[Role.ENCODE]:
            return (encode, instance) if encode.args.last(flag) else (instance, encode)
    return None


def _plain(value: Any, default: Any) -> str:
    return json.dumps(default if value is None else value, sort_keys=True)


@rule(
    id="encoder-takes-no-media",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="An encoder is not told to take no media.",
    why="vLLM starts it and answers every request with an error.",
    source="vLLM 0.28 to 0.33: accepted when asked; config/multimodal.py, get_limit_per_prompt",
    proved=True,
)
def encoder_takes_no_media(wiring: Wiring) -> Iterator[Broken]:
    """--language-model-only, or limits that are all 0."""
    encode = wiring.instances.get(Role.ENCODE)
    if encode is None:
        return
    if encode.user_value("--language-model-only") and (place := _given(encode, "--language-model-only")):
        message = "an encoder with it loads no encoder and takes no media, and vLLM says no word about it"
        yield Broken(*place, message, "remove it")
    limits = encode.user_value("--limit-mm-per-prompt")
    place = _given(encode, "--limit-mm-per-prompt")
    if place is None or not isinstance(limits, dict):
        return
    for modality in ("image", "video", "audio"):
        limit = limits.get(modality)
        if (limit.get("count") if isinstance(limit, dict) else limit) == 0 and not _limited_everywhere(
            wiring, modality
        ):
            message = f"the encoder refuses each {modality} that consumers would take, and vLLM says no word about it"
            yield Broken(*place, message, f"raise {modality} in it, or set the same limit for every role")
            return


def _limited_everywhere(wiring: Wiring, modality: str) -> bool:
    limits = [instance.user_value("--limit-mm-per-prompt") for instance in wiring.instances.values()]
    return all(isinstance(limit, dict) and limit.get(modality) == 0 for limit in limits)


@rule(
    id="decode-language-model-only",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="decode behind prefill does not run with --language-model-only.",
    why="From vLLM 0.33 it then takes no items without pixels: each request with media ends with an error.",
    source="vLLM 0.33 config/vllm.py:2846, asked",
    since=Release(0, 33),
    needs_release=True,
    proved=True,
)
def decode_language_model_only(wiring: Wiring) -> Iterator[Broken]:
    """The flag on an instance that gets KV blocks of requests with media."""
    decode = wiring.instances.get(Role.DECODE)
    if decode is None or decode.kv_role != "kv_consumer" or not decode.user_value("--language-model-only"):
        return
    place = _given(decode, "--language-model-only")
    if place is not None:
        message = f"from vLLM 0.33 decode then takes no media without pixels, so {wiring.release} fails such requests"
        yield Broken(*place, message, "remove it")


@rule(
    id="consumer-language-model-only",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="The consumer of embeddings does not run with --language-model-only.",
    why="It sets every limit of media to 0, so vLLM starts and refuses each request with media.",
    source="vLLM 0.33 config/multimodal.py, get_limit_per_prompt",
    proved=True,
)
def consumer_language_model_only(wiring: Wiring) -> Iterator[Broken]:
    """The flag on the role that consumes embeddings."""
    instance = wiring.instances.get(wiring.consumer)
    if instance is None or instance.ec_role != "ec_consumer" or not instance.user_value("--language-model-only"):
        return
    place = _given(instance, "--language-model-only")
    if place is not None and not place[0].startswith("spec.engine."):
        message = "it sets every limit of media to 0, so each request with media is refused"
        yield Broken(*place, message, "remove it")


@rule(
    id="media-io-differs",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="--media-io-kwargs is the same on every role.",
    why="It is part of the key by which consumers look embeddings up: nothing is found, and items without pixels kill "
    "the engine.",
    source="vLLM 0.30 to 0.33 multimodal/processing/inputs.py:34; hashes run on 0.32",
    since=HASHED_MEDIA_IO_SINCE,
    needs_release=True,
    proved=True,
)
def media_io_differs(wiring: Wiring) -> Iterator[Broken]:
    """Two roles decode media in different ways."""
    found = _differing(wiring, "--media-io-kwargs", {})
    if found is not None and (place := _given(found[0], "--media-io-kwargs")):
        message = f"{found[1].role} has another value, and it is part of the key of each embedding: none is found"
        yield Broken(*place, message, "move it to engine.args, so that every role has it")


@rule(
    id="hasher-differs",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="--mm-hasher-algorithm is the same on every role.",
    why="Items without an id of their own get different keys: consumers find no embedding.",
    source="vLLM 0.33 multimodal/hasher.py",
    proved=True,
)
def hasher_differs(wiring: Wiring) -> Iterator[Broken]:
    """Two roles hash in different ways."""
    found = _differing(wiring, "--mm-hasher-algorithm", "blake3")
    if found is not None and (place := _given(found[0], "--mm-hasher-algorithm")):
        message = f"{found[1].role} has another algorithm, so it looks embeddings up by other keys"
        yield Broken(*place, message, "move it to engine.args, so that every role has it")


@rule(
    id="trust-differs",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="--trust-request-mm-kwargs is on every role that a request visits, or on none.",
    why="A request with processor options is answered with 400 by the role that lacks it.",
    source="vLLM 0.31 to 0.33 entrypoints/generate/base/protocol.py:72",
    since=TRUST_SINCE,
    needs_release=True,
    proved=True,
)
def trust_differs(wiring: Wiring) -> Iterator[Broken]:
    """One role trusts what another refuses."""
    found = _differing(wiring, "--trust-request-mm-kwargs", False)
    if found is not None and (place := _given(found[0], "--trust-request-mm-kwargs")):
        message = f"{found[1].role} lacks it and answers requests with processor options with 400"
        yield Broken(*place, message, "move it to engine.args, so that every role has it")


@rule(
    id="encoder-shm-processor-cache",
    severity=Severity.WARNING,
    kind=Kind.SILENT,
    what="An encoder's processor cache is not of type shm.",
    why="A hit reports no metadata, so the media travel to the consumer as they are.",
    source="vLLM 0.28 to 0.33 multimodal/cache.py",
    proved=True,
)
def encoder_shm_processor_cache(wiring: Wiring) -> Iterator[Broken]:
    """The shm cache on an encoder."""
    encode = wiring.instances.get(Role.ENCODE)
    if encode is not None and encode.user_value("--mm-processor-cache-type") == "shm":
        place = _given(encode, "--mm-processor-cache-type")
        if place is not None:
            message = "on a hit the encoder reports no metadata, so the media travel on to the consumer"
            yield Broken(*place, message, "remove it from the encoder")


@rule(
    id="encoder-replaces-uuids",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="Before vLLM 0.30 an encoder keeps its processor cache.",
    why="Without it and without prefix caching, ids of items are replaced by random ones: consumers find nothing.",
    source="vLLM 0.28 renderers/base.py:700; 0.30 keeps explicit ids",
    until=EXPLICIT_UUIDS_KEPT_SINCE,
    needs_release=True,
    proved=True,
)
def encoder_replaces_uuids(wiring: Wiring) -> Iterator[Broken]:
    """--mm-processor-cache-gb 0 on an encoder, whose prefix caching is off."""
    encode = wiring.instances.get(Role.ENCODE)
    if encode is not None and encode.user_value("--mm-processor-cache-gb") == 0:
        place = _given(encode, "--mm-processor-cache-gb")
        if place is not None:
            message = f"vLLM {wiring.release} then replaces the ids of items by random ones, so consumers find nothing"
            yield Broken(*place, message, "remove it from the encoder, or use vLLM 0.30 or later")


@rule(
    id="encoder-graph-wrong-output",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="Before vLLM 0.31 the encoder runs without CUDA graphs of its own.",
    why="With FlashAttention 3 and 4 the padded part of a graph is not zeroed: NaN in embeddings.",
    source="vLLM 0.31 v1/attention/ops/vit_attn_wrappers.py:65 (vllm#57136)",
    until=Release(0, 31),
    needs_release=True,
    proved=True,
)
def encoder_graph_wrong_output(wiring: Wiring) -> Iterator[Broken]:
    """cudagraph_mm_encoder in the compilation options."""
    for instance in wiring.instances.values():
        options = instance.user_value("--compilation-config")
        place = _given(instance, "--compilation-config")
        if place and isinstance(options, dict) and options.get("cudagraph_mm_encoder"):
            message = f"in vLLM {wiring.release} cudagraph_mm_encoder may give embeddings that are not numbers"
            yield Broken(*place, message, "remove cudagraph_mm_encoder, or use vLLM 0.31 or later")


@rule(
    id="hub-offline-differs",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="HF_HUB_OFFLINE is the same on every role.",
    why="Offline, the model's id becomes the path of its snapshot, and transfer hand-shakes compare the string.",
    source="vLLM 0.33 cpu/protocol.py:78, nixl/metadata.py:146",
    proved=True,
)
def hub_offline_differs(wiring: Wiring) -> Iterator[Broken]:
    """One role is offline and another is not."""
    if len(wiring.instances) < 2 or wiring.deployment.spec.model.id.startswith(("/", "./")):
        return
    entries = {role: instance.env.get("HF_HUB_OFFLINE") for role, instance in wiring.instances.items()}
    values = {role: (entry.variable.value if entry else None) or "0" for role, entry in entries.items()}
    for role, entry in entries.items():
        other = next((name for name, value in values.items() if value != values[role]), None)
        if entry is not None and other is not None:
            message = f"{other} differs, so the model has another name there and hand-shakes between them are refused"
            yield Broken(entry.path, f"HF_HUB_OFFLINE={values[role]}", message, "move it to engine.env")
            return


RULES = (
    encoder_takes_no_media,
    decode_language_model_only,
    consumer_language_model_only,
    media_io_differs,
    hasher_differs,
    trust_differs,
    encoder_shm_processor_cache,
    encoder_replaces_uuids,
    encoder_graph_wrong_output,
    hub_offline_differs,
)
