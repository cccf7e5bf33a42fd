"""Print the flags of ``vllm serve`` of one release, and the fields of its JSON flags, as JSON.

Runs inside the engine environment, with the release's sources first on PYTHONPATH: ``python -m hack.vllm.flags``.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import importlib
import inspect
import json
import os
import sys
import types
import typing
from typing import Any, Literal, Union

from hack.vllm import fake_platform

Json = dict[str, Any]
PLAIN_KINDS = {
    "int": "int",
    "float": "float",
    "str": "str",
    "loads": "json",
    "union_dict_and_str": "json-or-str",
    "human_readable_int": "size",
    "human_readable_int_or_auto": "size-or-auto",
    "parse_dataclass": "json",
    "parse_reasoning_parser": "str",
}
ONLY_WITH_LORA = ("default_mm_loras",)
"""JSON flags at which nothing looks unless LoRA is on."""
ONLY_WHERE_USED = ("LoRAConfig",)
"""Classes that are made only where another flag asks for them, so that nothing holds unused values to their limits."""
AUTO_IS_NONE = ("attention_backend",)
"""Flags of an enumeration of which auto is no member and yet means "not set": config/attention.py."""
MADE_LATER = {
    "speculative_config": "SpeculativeConfig",
    "diffusion_config": "DiffusionConfig",
    "watermark_config": "WatermarkConfig",
}
"""JSON flags of which the parser takes any object, and the classes that are made of it afterwards."""
BOUNDS = ("gt", "ge", "lt", "le", "multiple_of")


def unwrap(function: Any) -> tuple[Any, bool]:
    """The innermost converter of an argument, and whether the empty string and ``None`` mean "not set".

    vLLM wraps converters in the closures ``optional_type`` and ``parse_type`` (engine/arg_utils.py).
    """
    nullable = False
    while getattr(function, "__name__", "") in ("_optional_type", "_parse_type"):
        nullable = nullable or function.__name__ == "_optional_type"
        function = inspect.getclosurevars(function).nonlocals["return_type"]
    return function, nullable


def kind_of(action: argparse.Action) -> tuple[str, bool, type | None]:
    """What a flag's value must look like: (kind, nullable, class of a JSON flag)."""
    if action.nargs == 0:
        return "bool", False, None
    if type(action).__name__ == "LoRAParserAction":
        return "lora", True, None
    function, nullable = unwrap(action.type)
    if function is None:
        return "str", nullable, None
    name = getattr(function, "__name__", "")
    if name == "<lambda>":
        # The backends' names are compared in lower case with underscores; other lambdas accept what they like.
        return ("name" if action.choices else "any"), nullable, None
    cls = inspect.signature(function).parameters["cls"].default if name == "parse_dataclass" else None
    return PLAIN_KINDS.get(name, "any"), nullable, cls


def describe(action: argparse.Action, spellings: list[str]) -> tuple[Json, type | None]:
    """One flag as it stands in the table; whatever is usual is left out."""
    kind, nullable, cls = kind_of(action)
    off = sorted(name for name in spellings if is_negation(action, name))
    on = [name for name in spellings if name not in off]
    canonical = next((name for name in on if name.startswith("--")), on[0])
    entry: Json = {"kind": kind}
    if aliases := sorted(set(on) - {canonical}):
        entry["aliases"] = aliases
    if off:
        entry["off"] = off
    if action.nargs in ("?", "+", "*"):
        entry["nargs"] = action.nargs
    if isinstance(action, argparse._AppendAction):
        entry["repeats"] = True
    if action.choices:
        choices = [choice for choice in action.choices if choice is not None and not (nullable and choice == "None")]
        entry["choices"] = sorted(str(choice) for choice in choices)
        # Some releases list the word None instead of the value that it is turned into, and so refuse both.
        nullable = None in action.choices
    if nullable:
        entry["nullable"] = True
    if cls is not None:
        entry["fields"] = cls.__name__
    default = action.default.value if isinstance(action.default, enum.Enum) else action.default
    if default != argparse.SUPPRESS and isinstance(default, str | int | float | bool | list | dict) and default != []:
        entry["default"] = default
    return {canonical: entry}, cls


def is_negation(action: argparse.Action, spelling: str) -> bool:
    """Whether this spelling of a two-sided flag switches it off (``--no-x``; ``--disable-x`` from 0.33)."""
    negative = getattr(action, "negative_option_strings", None)
    if negative is not None:
        return spelling in negative
    return isinstance(action, argparse.BooleanOptionalAction) and spelling.startswith("--no-")


def bounds_of(configs: Any) -> dict[str, Json]:
    """Numeric limits that pydantic holds the configuration fields to, by field name where no two classes differ."""
    found: dict[str, Json | None] = {}
    always = (cls for cls in vars(configs).values() if getattr(cls, "__name__", "") not in ONLY_WHERE_USED)
    for cls in always:
        for name, field in getattr(cls, "__pydantic_fields__", {}).items():
            if limits := limits_of(field):
                found[name] = limits if found.get(name, limits) == limits else None
    return {name: limits for name, limits in found.items() if limits}


def field_type(annotation: Any) -> list[str]:
    """A field's type as alternatives: ``int``, ``null``, ``list`` ... ; ``=x`` is the text x, ``==2`` the number 2."""
    if annotation in (int, float, bool, str):
        return [annotation.__name__]
    if annotation is type(None):
        return ["null"]
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is Literal:
        return sorted(f"={choice}" if isinstance(choice, str) else f"=={choice}" for choice in arguments)
    if origin in (Union, types.UnionType):
        return [alternative for part in arguments for alternative in field_type(part)]
    if origin is typing.Annotated:
        return field_type(arguments[0])
    if origin is dict or dataclasses.is_dataclass(annotation):
        return ["dict"]
    return ["list"] if origin in (list, set, tuple) else ["any"]


def limits_of(field: Any) -> dict[str, Any]:
    """Numeric limits in the metadata of a pydantic field."""
    return {key: value for item in field.metadata for key in BOUNDS if (value := getattr(item, key, None)) is not None}


def fields_of(cls: type) -> Json:
    """Fields that a JSON flag may hold; derived ones (``init=False``) are refused when a user sets them."""
    hints = typing.get_type_hints(cls, include_extras=False)
    pydantic = getattr(cls, "__pydantic_fields__", {})
    found = {}
    for name in sorted(field.name for field in dataclasses.fields(cls) if field.init):
        if pydantic and name not in pydantic:
            continue
        limits = limits_of(pydantic[name]) if pydantic else {}
        suffix = "".join(f" {key} {value}" for key, value in limits.items())
        types_of_it = field_type(hints.get(name))
        found[name] = [kind + suffix if kind in ("int", "float") else kind for kind in types_of_it]
    return found


def refine(entry: Json, dest: str, hint: Any) -> Json:
    """Add to a flag what its field's annotation says beyond the parser; returns the classes of JSON that this names.

    `hint` is the annotation in AsyncEngineArgs or the frontend's class.
    """
    parts = [part for part in (typing.get_args(hint) or (hint,)) if part is not type(None)]
    if typing.get_origin(hint) is dict:
        parts = [hint]
    enums = [part for part in parts if isinstance(part, type) and issubclass(part, enum.Enum)]
    if enums and entry["kind"] == "str" and "choices" not in entry:
        members = list(enums[0])
        if all(isinstance(member.value, int) for member in members):
            entry["choices"] = [str(member.value) for member in members]
        else:
            also = ["AUTO"] if dest in AUTO_IS_NONE else []
            entry |= {"kind": "upper", "choices": sorted([member.name for member in members] + also)}
    dicts = [part for part in parts if typing.get_origin(part) is dict]
    if not dicts or entry["kind"] not in ("json", "json-or-str") or "fields" in entry or dest in ONLY_WITH_LORA:
        return {}
    name = dest.replace("_", "-")
    entry |= {"kind": "json-or-str" if str in parts else "json", "fields": name}
    if dest in MADE_LATER:
        return {name: fields_of(getattr(importlib.import_module("vllm.config"), MADE_LATER[dest]))}
    return {name: {"*": field_type(typing.get_args(dicts[0])[1])}}


def registered_names() -> dict[str, list[str]]:
    """Names that a registry of the release knows, for flags whose parser takes any text."""
    from vllm.config import cache
    from vllm.engine import arg_utils
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
    from vllm.reasoning import ReasoningParserManager
    from vllm.transformers_utils import config

    reasoning = ["", *sorted(ReasoningParserManager.list_registered())]
    if hasattr(arg_utils, "parse_reasoning_parser"):  # from 0.33, in any case of letters
        reasoning += ["None", "none"]
    return {
        "--config-format": sorted({"auto", *config._CONFIG_FORMAT_TO_CONFIG_PARSER}),
        "--data-parallel-backend": ["mp", "ray"],
        "--quantization": sorted(QUANTIZATION_METHODS),
        "--kv-cache-dtype": list(getattr(cache, "KV_CACHE_DTYPES", ())),
        "--reasoning-parser": reasoning,
    }


def tool_parsers() -> list[str]:
    """Names that --tool-call-parser may have."""
    from vllm.tool_parsers import ToolParserManager

    return sorted(ToolParserManager.list_registered())


def hints_of() -> dict[str, Any]:
    """Annotations of the engine's fields behind the flags, by argparse's names; one written as text stays text.

    Those of the HTTP frontend are left out: nothing holds their values to them.
    """
    from vllm.engine.arg_utils import AsyncEngineArgs

    return {field.name: field.type for field in dataclasses.fields(AsyncEngineArgs)}


def flags() -> Json:
    """Flags and JSON classes of the vLLM that is loaded."""
    import vllm.config

    parser = fake_platform.serve_parser()
    bounds = bounds_of(vllm.config)
    hints = hints_of()
    # Not Action.option_strings: some spellings are accepted and yet hidden from the help (0.33).
    spellings: dict[argparse.Action, list[str]] = {}
    for name, action in parser._option_string_actions.items():
        spellings.setdefault(action, []).append(name)
    found: Json = {}
    classes: Json = {}
    for action, names in spellings.items():
        entry, cls = describe(action, names)
        [(name, described)] = entry.items()
        if action.dest in bounds:
            described["bounds"] = bounds[action.dest]
        classes |= refine(described, action.dest, hints.get(action.dest))
        found |= entry
        if cls is not None:
            classes[cls.__name__] = fields_of(cls)
    for name, known in registered_names().items():
        found[name].setdefault("choices", known)
    # Looked up only where tools are chosen automatically.
    found["--tool-call-parser"]["names"] = tool_parsers()
    return {"flags": found, "fields": classes}


def main() -> None:
    fake_platform.quiet()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # vLLM prints on standard output; keep that for the answer
    fake_platform.pretend(sys.argv[1] if len(sys.argv) > 1 else "cuda")
    json.dump(flags(), out, sort_keys=True)


if __name__ == "__main__":
    main()
