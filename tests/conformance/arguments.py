"""Random flags as users may write them: right ones, wrong ones, and every spelling that vLLM takes."""

import json
import random
from collections.abc import Mapping, Sequence

from epd_operator.engine.capabilities import Capabilities, Flag

NUMBERS = (
    "0",
    "1",
    "2",
    "7",
    "64",
    "-1",
    "-5",
    "4096",
    "1_000",
    " 3",
    "8k",
    "2M",
    "1.5k",
    "0.5",
    "1e3",
    "nan",
    "x",
    "",
    "None",
)
LORAS = ("a=b", "a", "", '{"name": "a", "path": "b"}', '{"name": "a"}', "[]")
TEXTS = ("auto", "none", "None", "", "x", "a b", "AUTO", "-", "a,b", "./file", "0")
JSONS = ("{}", '{"a": 1}', "[]", "1", "null", "{", '{"a": [1, 2]}', '{"b": 8k}', "text", "None", "")
FIELD_VALUES: tuple[object, ...] = (1, 0, -1, 1.5, "x", "2", True, None, [], {}, "true")
UNKNOWN = ("--no-such-flag", "--tensor-paralel-size", "--mm-encoder", "--en", "-x", "-tpp", "stray", "-1")

_FILES = "names a file, a folder, a repository or a class that the test machine does not have"
_MODEL = "only for some models, which the test models are not"
_HARDWARE = "depends on kernels and devices that are only pretended"
_INSIDE = "a JSON flag whose class compares its fields with each other or with the model; names and types are checked"
NOT_SWEPT = {
    "--config": _FILES,
    "--help": "ends the process",
    **dict.fromkeys(
        (
            "--chat-template",
            "--config-format",
            "--distributed-executor-backend",
            "--hf-config-path",
            "--log-config-file",
            "--tokenizer",
            "--tokenizer-mode",
        ),
        _FILES,
    ),
    **dict.fromkeys(
        (
            "--aux-output-config",
            "--enable-expert-parallel",
            "--enable-hc-sp",
            "--enable-return-routed-experts",
            "--engram-config",
            "--model-class-overrides",
            "--moe-backend",
            "--reasoning-config",
            "--reasoning-parser",
            "--spec-method",
            "--spec-model",
            "--spec-tokens",
            "--speculative-config",
            "--use-replayssm",
        ),
        _MODEL,
    ),
    **dict.fromkeys(
        (
            "--enable-batch-sharded-sampling",
            "--enable-cumem-allocator",
            "--enable-dbo",
            "--enable-sleep-mode",
            "--kda-prefill-backend",
            "--max-cudagraph-capture-size",
            "--max-num-active-seqs",
            "--quantization",
            "--ubatch-size",
        ),
        _HARDWARE,
    ),
    **dict.fromkeys(
        (
            "--attention-config",
            "--compilation-config",
            "--custom-histogram-buckets",
            "--eplb-config",
            "--ir-op-priority",
            "--kernel-config",
            "--logging-config",
            "--pooler-config",
            "--profiler-config",
            "--quantization-config",
            "--structured-outputs-config",
            "--watermark-config",
        ),
        _INSIDE,
    ),
}
"""Flags that the sweep leaves out, and why."""


def swept(capabilities: Capabilities) -> list[Flag]:
    """The flags of a release from which the sweep draws."""
    return [flag for name, flag in capabilities.flags.items() if name not in NOT_SWEPT]


def random_value(rng: random.Random, flag: Flag, capabilities: Capabilities) -> str:
    """Something to put behind a flag; more often right than wrong."""
    if flag.choices and rng.random() < 0.7:
        return rng.choice(flag.choices)
    match flag.kind:
        case "int" | "float" | "size" | "size-or-auto":
            return rng.choice(NUMBERS)
        case "json" | "json-or-str" if flag.fields and rng.random() < 0.8:
            return json.dumps(random_fields(rng, capabilities.fields[flag.fields]))
        case "json" | "json-or-str":
            return rng.choice(JSONS)
        case "lora":
            return rng.choice(LORAS)
        case _:
            return rng.choice(TEXTS)


def random_fields(rng: random.Random, fields: Mapping[str, tuple[str, ...]]) -> dict[str, object]:
    """A JSON flag's value: a few of its fields, rarely one that it has not."""
    value: dict[str, object] = {}
    for name in rng.sample(sorted(fields), k=min(2, len(fields))):
        literals = [_literal(kind) for kind in fields[name] if kind.startswith("=")]
        plain: dict[str, object] = {
            "int": 4,
            "float": 0.5,
            "bool": True,
            "str": "x",
            "dict": {},
            "list": [],
            "null": None,
        }
        right = [plain[word] for kind in fields[name] if (word := kind.split(" ")[0]) in plain]
        value[name.replace("*", "image")] = (
            rng.choice(literals or right or [None]) if rng.random() < 0.7 else rng.choice(FIELD_VALUES)
        )
    if rng.random() < 0.1:
        value["foo"] = 1
    return value


def _literal(kind: str) -> object:
    return int(kind[2:]) if kind.startswith("==") else kind[1:]


def spelled(rng: random.Random, flag: Flag) -> str:
    """One of the ways to write a flag."""
    name = rng.choice(flag.spellings) if rng.random() < 0.3 else flag.name
    if name.startswith("--"):
        if rng.random() < 0.15:
            name = "--" + name[2:].replace("-", "_")
        if rng.random() < 0.1:
            name = name[: rng.randint(4, len(name))]
    return name


def random_argument(rng: random.Random, capabilities: Capabilities, flags: Sequence[Flag] | None = None) -> list[str]:
    """One of `flags` (of all) with what belongs to it, or something that is none."""
    if rng.random() < 0.08:
        return [rng.choice(UNKNOWN)]
    flag = rng.choice(flags or list(capabilities.flags.values()))
    name = spelled(rng, flag)
    if not flag.takes_value:
        return [f"{name}=true"] if rng.random() < 0.03 else [name]
    value = random_value(rng, flag, capabilities)
    if flag.fields and rng.random() < 0.2:
        key = rng.choice(sorted(capabilities.fields[flag.fields])).replace("*", "image")
        part = rng.choice(["1", "x", "true", "null", "a,b", '"q"', "2k"])
        return [f"{name}.{key}{'+' if rng.random() < 0.1 else ''}", part]
    if rng.random() < 0.03:
        return [name]
    if rng.random() < 0.25:
        return [f"{name}={value}"]
    if flag.nargs == "+" and rng.random() < 0.4:
        return [name, value, random_value(rng, flag, capabilities)]
    return [name, value]


def random_arguments(rng: random.Random, capabilities: Capabilities, most: int = 3) -> list[str]:
    """A few flags in a row."""
    return [word for _ in range(rng.randint(1, most)) for word in random_argument(rng, capabilities)]
