"""The command line of one vLLM instance: each flag and variable with the reason why it is there."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from epd_operator.api.role import Role, TensorIPC, Topology
from epd_operator.engine.drain import drain_of
from epd_operator.engine.environment import Variable, environment
from epd_operator.engine.instance import Instance
from epd_operator.engine.release import Release
from epd_operator.engine.site import POD, Site
from epd_operator.engine.transfer import embeddings_config, kv_config
from epd_operator.engine.wiring import Wiring

ENCODER_TOKEN_BUDGET = 16384
"""--max-num-batched-tokens of an encoder: it is also its cache size and the largest item; one full-size image of
Qwen2-VL and Qwen3-VL is 16,384 tokens."""
NO_DOMAIN = "only-data-urls.invalid"
"""Stands for an empty list, which vLLM takes as any domain; `.invalid` never resolves (RFC 2606)."""
MM_EMBEDS_DERIVED_SINCE = Release(0, 30)
ENCODE_ONLY_DERIVED_SINCE = Release(0, 29)
VIDEO_DECODER_CHOSEN_SINCE = Release(0, 30)


@dataclass(frozen=True, slots=True)
class Arg:
    """One flag with its value or values."""

    flag: str
    values: tuple[str, ...]
    reason: str
    wired: bool = False
    """Part of what makes the roles meet: user args may not replace it."""

    @property
    def words(self) -> tuple[str, ...]:
        """As on the command line."""
        return (self.flag, *self.values)


@dataclass(frozen=True, slots=True)
class Command:
    """What is run for one instance: `vllm serve` with these words, in this environment."""

    model: str
    args: tuple[Arg, ...]
    env: tuple[Variable, ...]

    @property
    def argv(self) -> tuple[str, ...]:
        """The words after `vllm serve`."""
        return (self.model, *(word for arg in self.args for word in arg.words))


def command(wiring: Wiring, role: Role, site: Site = POD) -> Command:
    """The command line and environment of a role's instances at a site."""
    instance = wiring.instances[role]
    written = {argument.name for argument in instance.args.arguments}
    defaults = [arg for arg in _own_args(wiring, instance, site) if arg.wired or _canonical(wiring, arg) not in written]
    return Command(
        model=model_argument(wiring, site),
        args=(*defaults, *_user_args(wiring, instance)),
        env=environment(wiring, instance, site),
    )


def _canonical(wiring: Wiring, arg: Arg) -> str:
    """The flag that a default sets, whichever way round it is written."""
    flag = wiring.capabilities.flag(arg.flag)
    return flag.name if flag else arg.flag


def model_argument(wiring: Wiring, site: Site = POD) -> str:
    """The model as every role must be given it: transfer hand-shakes compare the string."""
    model_id = wiring.deployment.spec.model.id
    if model_id.startswith(("/", "./")):
        return f"{site.models}/{model_id.removeprefix('.').strip('/')}".rstrip("/")
    return model_id


def served_name(wiring: Wiring) -> str:
    """The name of the model in the API."""
    model = wiring.deployment.spec.model
    return model.served_name or model.id


def wired_flags(wiring: Wiring, role: Role) -> dict[str, Arg]:
    """The flags of a role that user args may not touch, with what the operator writes there."""
    return {arg.flag: arg for arg in _own_args(wiring, wiring.instances[role], POD) if arg.wired}


def _own_args(wiring: Wiring, instance: Instance, site: Site) -> Iterator[Arg]:
    yield from _parallel_args(instance)
    yield from _multimodal_args(wiring, instance)
    # After the flags that take several values, so that a value too much among the user's words is not theirs.
    yield from _serving_args(wiring, instance, site)
    config = embeddings_config(wiring, instance, site)
    if config is not None:
        yield Arg("--ec-transfer-config", (_json(config),), f"{instance.ec_role} of embeddings", wired=True)
    config = kv_config(wiring, instance, site)
    if config is not None:
        yield Arg("--kv-transfer-config", (_json(config),), f"{instance.kv_role} of KV blocks", wired=True)


def _serving_args(wiring: Wiring, instance: Instance, site: Site) -> Iterator[Arg]:
    model = wiring.deployment.spec.model
    yield Arg("--served-model-name", (served_name(wiring),), "one name in the API of every role", wired=True)
    if model.revision:
        yield Arg("--revision", (model.revision,), "spec.model.revision", wired=True)
    if site.local:
        yield Arg("--host", (site.address,), "reachable from this machine only", wired=True)
    yield Arg("--port", (str(site.ports.http),), "HTTP, for the proxy and the probes", wired=True)
    yield Arg(
        "--shutdown-timeout",
        (str(drain_of(wiring, instance.role).shutdown_timeout_seconds),),
        "running requests end before the engine does; with vLLM's default of 0 they are lost",
        wired=True,
    )
    yield Arg("--disable-access-log-for-endpoints", ("/health,/metrics",), "probes would fill the log", wired=False)


def _parallel_args(instance: Instance) -> Iterator[Arg]:
    for flag, degree, name in (
        ("--tensor-parallel-size", instance.tensor, "tensor"),
        ("--pipeline-parallel-size", instance.pipeline, "pipeline"),
        ("--data-parallel-size", instance.data, "data"),
    ):
        if degree > 1:
            yield Arg(flag, (str(degree),), f"spec.{instance.role}.parallelism.{name}", wired=True)


def _multimodal_args(wiring: Wiring, instance: Instance) -> Iterator[Arg]:
    proxy = wiring.deployment.spec.proxy
    domains = (proxy.media.allowed_domains if proxy and proxy.media else None) or [NO_DOMAIN]
    why = "media URLs: the proxy's policy, held by the engines too"
    yield Arg("--allowed-media-domains", tuple(domains), why, wired=True)
    release = wiring.release
    old_embeds = release is not None and release.minor_key < MM_EMBEDS_DERIVED_SINCE.minor_key
    if old_embeds and instance.role is not Role.ENCODE and wiring.topology is not Topology.PD:
        yield Arg("--enable-mm-embeds", (), "takes items without pixels (derived by vLLM from 0.30)", wired=True)
    if instance.tensor_ipc is TensorIPC.TORCH_SHM:
        why = "tensors reach the engine through shared memory or device IPC instead of being copied"
        yield Arg("--mm-tensor-ipc", ("torch_shm",), why, wired=True)
    yield from _processor_device(instance)
    yield from _media_io(wiring)
    if instance.role is not Role.ENCODE:
        return
    if release is not None and release.minor_key < ENCODE_ONLY_DERIVED_SINCE.minor_key:
        yield Arg("--mm-encoder-only", (), "no weights of the language model (derived by vLLM from 0.29)", wired=True)
        yield Arg("--no-enable-prefix-caching", (), "an encoder has no KV cache (derived by vLLM from 0.29)")
    yield Arg("--enforce-eager", (), "an encoder runs no language model that graphs would speed up")
    yield Arg(
        "--max-num-batched-tokens",
        (str(ENCODER_TOKEN_BUDGET),),
        "also the encoder cache and the largest item: one full-size image",
    )


def _processor_device(instance: Instance) -> Iterator[Arg]:
    wanted = instance.wanted_preprocessing.value
    if wanted == "CPU":
        yield Arg("--mm-processor-device", ("cpu",), f"spec.{instance.role}.preprocessing.device: CPU", wired=True)
    elif wanted == "Accelerator":
        why = f"spec.{instance.role}.preprocessing.device: Accelerator"
        # On CPU there is none: a rule says so, and vLLM would with these words.
        device = instance.torch_device if instance.torch_device != "cpu" else "cuda"
        yield Arg("--mm-processor-device", (device,), why, wired=True)


def _media_io(wiring: Wiring) -> Iterator[Arg]:
    """One way to decode videos on every role, where an encoder would choose another by itself.

    From 0.30 an encoder that preprocesses on CUDA decodes with torchcodec, and how media are decoded is part of the key
    that encoder and consumers look an item up by (0.33 config/vllm.py, _resolve_mm_video_decode_device).
    """
    encode = wiring.instances.get(Role.ENCODE)
    if encode is None or wiring.release is None or wiring.release.minor_key < VIDEO_DECODER_CHOSEN_SINCE.minor_key:
        return
    if encode.preprocessing_device.partition(":")[0] == "cuda":
        why = "the same decoder on every role, or no video is found again"
        yield Arg("--media-io-kwargs", ('{"video":{"backend":"opencv"}}',), why)


def _user_args(wiring: Wiring, instance: Instance) -> Iterator[Arg]:
    """The user's words, unchanged and in their order, each flag with the place where it was written."""
    words = [*(wiring.deployment.spec.engine.args or []), *(instance.spec.args or [])]
    starts = sorted({0, *(argument.index for argument in instance.args.arguments)})
    for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
        if words:
            yield Arg(words[start], tuple(words[start + 1 : end]), instance.arg_paths[start])


def _json(config: Mapping[str, Any]) -> str:
    return json.dumps(config, separators=(",", ":"), sort_keys=True)
