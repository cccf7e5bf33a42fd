"""Flags that vLLM takes only together with another one, or only with some values: seen by asking it."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from epd_operator.api.finding import Severity
from epd_operator.engine.capabilities import nearest
from epd_operator.engine.instance import Instance
from epd_operator.engine.prediction import caches_prefixes
from epd_operator.engine.release import OLDEST, Release
from epd_operator.engine.rules.flags import looked_at
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

VERSION = re.compile(r"v?\d+(\.\d+)*(\.?(a|b|rc|post|dev)\d*)*(\+[a-z0-9.]+)?")
"""What packaging.version takes, but for its rarest spellings."""
EFFORTS = dict.fromkeys(("none", "minimal", "low", "medium", "high", "xhigh", "max")).keys()
"""vLLM 0.33 entrypoints, validate_reasoning_effort_map."""
EXECUTORS = ("mp", "ray", "uni", "external_launcher")
"""vLLM config/parallel.py, DistributedExecutorBackend; 0.28 to 0.33."""
Values = Mapping[str, Any]


class Need(NamedTuple):
    """What a flag needs of the others."""

    flag: str
    holds: Callable[[Any, Values], bool]
    """Whether vLLM accepts it: the flag's value, and all values of the instance's line."""
    message: str
    """Why it is wrong, without what vLLM does then."""
    remedy: str
    since: Release = OLDEST
    until: Release | None = None


def _with(*flags: str) -> Callable[[Any, Values], bool]:
    """Needed when the flag is on or has a value: one of these others."""
    return lambda value, values: not value or any(values.get(flag) for flag in flags)


def _beside(flag: str, *wanted: Any) -> Callable[[Any, Values], bool]:
    """Needed when the flag is on or has a value: another with one of these values."""
    return lambda value, values: not value or values.get(flag) in wanted


def _at_least(least: float) -> Callable[[Any, Values], bool]:
    return lambda value, _: not isinstance(value, int | float) or value >= least


_SHM = "--mm-processor-cache-type"
_FP8 = "--mm-encoder-attn-dtype"
_NUMA = "--numa-bind"
NEEDS = (
    Need(
        "--enable-auto-tool-choice",
        _with("--tool-call-parser"),
        "it works only with --tool-call-parser",
        "add --tool-call-parser",
    ),
    Need(
        "--enable-log-outputs",
        _with("--enable-log-requests"),
        "it works only with --enable-log-requests",
        "add --enable-log-requests",
    ),
    Need(
        "--collect-detailed-traces",
        _with("--otlp-traces-endpoint"),
        "it works only with --otlp-traces-endpoint",
        "add --otlp-traces-endpoint",
    ),
    Need(
        "--mm-shm-cache-max-object-size-mb",
        lambda value, values: value == 128 or values.get(_SHM) == "shm",
        "it may only be set with --mm-processor-cache-type shm",
        "add --mm-processor-cache-type shm, or remove it",
    ),
    *(
        Need(flag, _beside(_FP8, "fp8"), "it works only with --mm-encoder-attn-dtype fp8", f"add {_FP8} fp8")
        for flag in ("--mm-encoder-fp8-scale-path", "--mm-encoder-fp8-scale-save-path")
    ),
    *(
        Need(flag, _with(_NUMA), "it works only with --numa-bind", "add --numa-bind")
        for flag in ("--numa-bind-nodes", "--numa-bind-cpus")
    ),
    Need(
        "--mamba-ssu-algorithm",
        _beside("--mamba-backend", "FLASHINFER", "flashinfer"),
        "it works only with --mamba-backend flashinfer",
        "add --mamba-backend flashinfer, or remove it",
    ),
    Need(
        "--enable-mamba-cache-stochastic-rounding",
        _beside("--mamba-ssm-cache-dtype", "float16"),
        "it works only with --mamba-ssm-cache-dtype float16",
        "add --mamba-ssm-cache-dtype float16",
    ),
    Need(
        "--offload-backend",
        lambda value, values: (
            value != "prefetch"
            or (values.get("--offload-group-size") or 0) >= (values.get("--offload-num-in-group") or 1)
        ),
        "prefetch works only with --offload-group-size of at least --offload-num-in-group",
        "add --offload-group-size",
    ),
    Need(
        "--return-sampling-mask",
        _beside("--logprobs-mode", "processed_logprobs"),
        "it works only with --logprobs-mode processed_logprobs",
        "add --logprobs-mode processed_logprobs",
    ),
    Need(
        "--per-request-spec-decode-metrics",
        lambda value, values: value in (None, "none") or bool(values.get("--speculative-config")),
        "it works only with --speculative-config",
        "add --speculative-config, or remove it",
    ),
    Need(
        "--enable-per-request-metrics",
        lambda value, values: not (value and values.get("--disable-log-stats")),
        "it works only without --disable-log-stats",
        "remove --disable-log-stats",
    ),
    Need(
        "--ray-workers-use-nsight",
        _beside("--distributed-executor-backend", "ray"),
        "it works only where workers run with Ray, and here they do not",
        "remove it",
    ),
    Need(
        "--max-num-active-seqs",
        lambda value, values: not isinstance(value, int) or value <= (values.get("--max-num-seqs") or math.inf),
        "it may not be larger than --max-num-seqs",
        "lower it, or raise --max-num-seqs",
    ),
    *(
        Need(
            flag,
            lambda value, values: not values.get("--enable-lora") or not isinstance(value, int) or value >= 1,
            "with --enable-lora it is at least 1",
            "use 1 or more",
        )
        for flag in ("--max-loras", "--max-lora-cls-labels")
    ),
    Need(
        "--max-cpu-loras",
        lambda value, values: (
            not values.get("--enable-lora")
            or not isinstance(value, int)
            or value < 1
            or value >= (values.get("--max-loras") or 1)
        ),
        "with --enable-lora it is at least --max-loras",
        "raise it, or remove it",
    ),
    Need(
        "--show-hidden-metrics-for-version",
        lambda value, _: not isinstance(value, str) or VERSION.fullmatch(value.strip().lower()) is not None,
        "it names a vLLM version",
        "write it as major.minor, for example 0.32",
    ),
    Need(
        "--reasoning-effort-map",
        lambda value, _: (
            value is None
            or (isinstance(value, dict) and value.keys() <= EFFORTS and all(isinstance(v, str) for v in value.values()))
        ),
        "it maps vLLM's reasoning efforts to texts",
        f"use only {', '.join(EFFORTS)} as keys",
    ),
    Need(
        "--enable-eplb",
        _with("--enable-expert-parallel"),
        "it works only with --enable-expert-parallel",
        "add --enable-expert-parallel",
    ),
    Need(
        "--eplb-config",
        lambda value, values: (
            values.get("--enable-eplb") or not isinstance(value, dict) or not value.get("num_redundant_experts")
        ),
        "num_redundant_experts works only with --enable-eplb",
        "add --enable-eplb, or remove num_redundant_experts",
    ),
    Need("--enable-elastic-ep", _with("--enable-eplb"), "it works only with --enable-eplb", "add --enable-eplb"),
    Need(
        "--enable-fault-tolerance",
        lambda value, _: not value,
        "it works only behind a load balancer of data parallel ranks, and here an instance has them in itself",
        "remove it",
    ),
    Need(
        "--decode-context-parallel-size",
        lambda value, values: not isinstance(value, int) or value < 1 or values["--tensor-parallel-size"] % value == 0,
        "it must divide the role's parallelism.tensor",
        "use a divisor, or remove it",
    ),
    Need(
        "--dcp-comm-backend",
        lambda value, values: value != "a2a" or (values.get("--decode-context-parallel-size") or 1) > 1,
        "a2a works only with --decode-context-parallel-size above 1",
        "remove it",
        until=Release(0, 29),
    ),
    Need(
        "--distributed-executor-backend",
        lambda value, _: value is None or value in EXECUTORS or "." in value,
        f"it is one of {', '.join(EXECUTORS)}, or a class as module.Class",
        "remove it: vLLM knows the right one",
    ),
    Need(
        "--default-mm-loras",
        lambda value, values: (
            not values.get("--enable-lora")
            or value is None
            or (isinstance(value, dict) and all(isinstance(path, str) for path in value.values()))
        ),
        "with --enable-lora it is an object of texts",
        "write one path for each modality",
    ),
    Need(
        "--logits-processors",
        lambda value, _: None not in (value or ()),
        "None and the empty text are no classes",
        "name classes as module:Class, or remove it",
    ),
    Need(
        "--max-model-len",
        lambda value, _: not isinstance(value, int) or value == -1 or value >= 1,
        "it is at least 1, or auto",
        "use the tokens of the longest request, or auto",
    ),
    Need(
        "--max-num-seqs",
        lambda value, values: (
            not isinstance(value, int) or value <= (values.get("--max-num-batched-tokens") or math.inf)
        ),
        "it may not be larger than --max-num-batched-tokens",
        "lower it, or raise --max-num-batched-tokens",
    ),
    Need("--sse-keep-alive-interval", _at_least(0), "it may not be negative", "use 0 to switch it off"),
)


@rule(
    id="args-need",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="Flags that work only together with another one, or only with some values, are given so.",
    why="vLLM refuses to start.",
    source="vLLM config/ and entrypoints/, 0.28 to 0.33; asked of each",
    proved=True,
    needs_release=True,
)
def need(wiring: Wiring) -> Iterator[Broken]:
    """A flag without the one that it needs."""
    release = wiring.release
    if release is None:
        return
    for instance in wiring.instances.values():
        values = {"--tensor-parallel-size": instance.tensor, **instance.args.values}
        for wanted in NEEDS:
            given = instance.args.last(wanted.flag)
            if (
                given is None
                or not release.is_within(wanted.since, wanted.until)
                or wanted.holds(values[wanted.flag], values)
            ):
                continue
            if looked_at(wiring, wanted.flag) and not _has_problem(instance, given.index):
                message = f"{wanted.message} (vLLM refuses to start)"
                yield Broken.at(instance, given, message, wanted.remedy)


def _has_problem(instance: Instance, index: int) -> bool:
    """Whether another rule already says that the argument itself is wrong."""
    return any(problem.index == index for problem in instance.args.problems)


@rule(
    id="mamba-block-without-prefix-caching",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="--mamba-block-size is given only where prefixes are cached.",
    why="vLLM refuses to start, unless it is the model's longest sequence, where it means nothing.",
    source="vLLM 0.28 to 0.33 config/vllm.py, validate_mamba_block_size; asked",
)
def mamba_block_size(wiring: Wiring) -> Iterator[Broken]:
    """A block size for an encoder, or where the user switches prefix caching off."""
    for instance in wiring.instances.values():
        given = instance.args.last("--mamba-block-size")
        if given is not None and instance.user_value("--mamba-block-size") and not caches_prefixes(wiring, instance):
            message = "it works only with prefix caching, which is off here (vLLM refuses to start)"
            yield Broken.at(instance, given, message, "remove it")


@rule(
    id="tool-parser-unknown",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="With --enable-auto-tool-choice, --tool-call-parser is one that the release has.",
    why="vLLM refuses to start: invalid tool call parser.",
    source="vLLM entrypoints, validate_api_server_args, each release; asked",
    proved=True,
    needs_release=True,
)
def tool_parser_unknown(wiring: Wiring) -> Iterator[Broken]:
    """A parser that is neither registered nor brought by a plugin."""
    for instance in wiring.instances.values():
        given, name = instance.args.last("--tool-call-parser"), instance.user_value("--tool-call-parser")
        flag = wiring.capabilities.flag("--tool-call-parser")
        if given is None or flag is None or not name or name in flag.names:
            continue
        plugin = instance.user_value("--tool-parser-plugin")
        if instance.user_value("--enable-auto-tool-choice") and not plugin:
            near = nearest(name, flag.names)
            message = f"vLLM {wiring.release} has no such tool parser (vLLM refuses to start)"
            remedy = f"write {near}" if near else "use one that the release has, or --tool-parser-plugin"
            yield Broken.at(instance, given, message, remedy)


RULES = (need, mamba_block_size, tool_parser_unknown)
