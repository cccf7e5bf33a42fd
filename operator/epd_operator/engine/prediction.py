"""What vLLM will make of an instance: the facts that it derives by itself when it starts.

Sources: config/vllm.py of 0.28 to 0.33 (`_resolve_mm_encoder_only`, `_resolve_mm_embedding_inputs`,
`use_v2_model_runner`), engine/arg_utils.py; compared with the real configuration of every release.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from epd_operator.api.device import DeviceType
from epd_operator.api.role import Topology
from epd_operator.engine.command import ENCODE_ONLY_DERIVED_SINCE
from epd_operator.engine.connectors import EC_CPU, EC_CPU_NIXL_SINCE
from epd_operator.engine.instance import Instance
from epd_operator.engine.release import OLDEST, Release
from epd_operator.engine.wiring import Wiring

EMBEDS_DERIVED_SINCE = Release(0, 30)
LANGUAGE_MODEL_ONLY_HELD_SINCE = Release(0, 33)
"""A KV consumer that only runs the language model takes no embeddings, unless told to."""


class NeedsV1(NamedTuple):
    """A flag that the V2 model runner does not support, so that vLLM takes the other one."""

    flag: str
    until: Release
    """The first release in which it does."""
    since: Release = OLDEST
    values: tuple[str, ...] = ()
    """The values for which this is so; none: whenever it is on or has a value."""
    refused_on_v2: bool = True
    """Whether vLLM refuses it where the V2 runner is asked for."""


NEEDS_V1 = (
    NeedsV1("--enable-prompt-embeds", Release(0, 29)),
    NeedsV1("--kv-sharing-fast-prefill", Release(0, 30)),
    NeedsV1("--logits-processors", Release(0, 31)),
    NeedsV1("--enable-elastic-ep", Release(0, 32)),
    NeedsV1("--mamba-cache-mode", Release(0, 32), since=Release(0, 30), values=("all",)),
    NeedsV1("--convert", Release(0, 29), values=("classify", "embed"), refused_on_v2=False),
    NeedsV1("--runner", Release(0, 29), values=("draft", "pooling"), refused_on_v2=False),
)
"""vLLM config/vllm.py, _get_v2_model_runner_unsupported_features; 0.28 also _is_default_v2_model_runner_model."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One instance as vLLM will configure itself."""

    encode_only: bool
    """Only the encoder is loaded and run."""
    allow_missing_mm_embeddings: bool
    """Items may come as metadata only."""
    enable_mm_embeds: bool
    """Items may come as embeddings."""
    mm_processor_device: str
    """Where media become tensors: cpu, cuda, xpu."""
    prefix_caching: bool
    v2_model_runner: bool


def predict(wiring: Wiring, instance: Instance) -> Prediction:
    """What vLLM makes of an instance that it accepts; an unknown architecture is taken for multimodal."""
    multimodal = wiring.takes_media
    encode_only = multimodal and instance.ec_role == "ec_producer"
    missing = multimodal and _takes_metadata(wiring, instance)
    return Prediction(
        encode_only=encode_only,
        allow_missing_mm_embeddings=missing,
        enable_mm_embeds=multimodal and _takes_embeddings(wiring, instance, missing=missing),
        mm_processor_device=instance.preprocessing_device.partition(":")[0] if multimodal else "cpu",
        prefix_caching=caches_prefixes(wiring, instance),
        v2_model_runner=runs_v2(wiring, instance),
    )


def _takes_metadata(wiring: Wiring, instance: Instance) -> bool:
    if instance.ec_role == "ec_consumer":
        return True
    if instance.kv_role != "kv_consumer":
        return False
    held = wiring.release is None or wiring.release.is_within(LANGUAGE_MODEL_ONLY_HELD_SINCE)
    return not (held and instance.user_value("--language-model-only"))


def _takes_embeddings(wiring: Wiring, instance: Instance, *, missing: bool) -> bool:
    derived = wiring.release is None or wiring.release.is_within(EMBEDS_DERIVED_SINCE)
    if derived:
        return missing
    # Before, the operator says so on every consumer.
    return instance.ec_role != "ec_producer" and wiring.topology is not Topology.PD


def caches_prefixes(wiring: Wiring, instance: Instance) -> bool:
    """Whether vLLM keeps KV blocks for requests that begin alike."""
    wanted = instance.user_value("--enable-prefix-caching")
    if instance.ec_role != "ec_producer":
        return True if wanted is None else bool(wanted)
    # Before it was derived, the operator switches it off, which a user may take back.
    derived = wiring.release is None or wiring.release.is_within(ENCODE_ONLY_DERIVED_SINCE)
    return not derived and bool(wanted)


def runs_v2(wiring: Wiring, instance: Instance) -> bool:
    """Whether vLLM takes its V2 model runner."""
    written = instance.env.get("VLLM_USE_V2_MODEL_RUNNER")
    moves = wiring.release is None or wiring.release.is_within(EC_CPU_NIXL_SINCE)
    if moves and wiring.embeddings_by(EC_CPU) is not None and instance.ec_role is not None:
        return True  # the operator sets the variable
    if written is not None and written.variable.value is not None:
        return written.variable.value not in ("0", "")
    return instance.device_type is not DeviceType.CPU and not any(needing_v1(wiring, instance))


def needing_v1(wiring: Wiring, instance: Instance) -> Iterator[NeedsV1]:
    """The flags of the user for which vLLM takes the V1 runner, if it has the choice."""
    return (v1 for v1 in NEEDS_V1 if _needs(v1, wiring, instance))


def _needs(v1: NeedsV1, wiring: Wiring, instance: Instance) -> bool:
    if wiring.release is None or not wiring.release.is_within(v1.since, v1.until):
        return False
    value = instance.user_value(v1.flag)
    return value in v1.values if v1.values else bool(value)
