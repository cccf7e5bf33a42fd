"""Read one value of a vLLM flag as vLLM's own argument parser would.

Sources: engine/arg_utils.py (`_compute_kwargs`, `optional_type`, `human_readable_int`) and pydantic's lax mode, which
vLLM's configuration classes use; 0.28 to 0.33 agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from epd_operator.engine.capabilities import Bounds, Capabilities, Flag, nearest

Trouble = Literal["invalid-type", "invalid-choice", "out-of-bounds", "unknown-field", "invalid-field"]

SIZE = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
JSON_SIZE = re.compile(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b")
JSON_STRING = re.compile(r'("(?:[^"\\]|\\.)*")')
NULL_IS_DEFAULT = frozenset({"--limit-mm-per-prompt", "--media-io-kwargs"})
"""JSON flags whose null vLLM drops, though their type lacks it: config/model.py, mm_config_kwargs; 0.28 to 0.33."""
POWER = {"k": 1, "m": 2, "g": 3, "t": 4}
TRUTHS = {"true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "1", "0"}
KIND_WORDS = {
    "int": "an integer",
    "float": "a number",
    "size": "an integer, or one with a suffix such as 8k or 2M",
    "size-or-auto": "an integer, one with a suffix such as 8k, or auto",
    "json": "JSON",
    "json-or-str": "text, or a JSON object",
    "lora": "name=path, or a JSON object with name and path",
}


class Wrong(NamedTuple):
    """Why vLLM refuses a value: `expected` completes "must be ..."; `found` is the part that is wrong."""

    trouble: Trouble
    found: str
    expected: str
    nearest: str | None = None


class Read(NamedTuple):
    """A value as Python sees it, or what is wrong with it."""

    value: Any
    wrong: Wrong | None = None


def read_value(flag: Flag, text: str, capabilities: Capabilities) -> Read:
    """Convert and check one value of `flag`; never raises."""
    if flag.nullable and text in ("", "None"):
        return Read(None)
    try:
        value = _convert(flag, text)
    except (ValueError, RecursionError, OverflowError):
        return Read(None, Wrong("invalid-type", text, KIND_WORDS.get(flag.kind, flag.kind)))
    if flag.choices and str(value) not in flag.choices:
        options = ", ".join(flag.choices)
        return Read(None, Wrong("invalid-choice", text, f"one of {options}", nearest(str(value), flag.choices)))
    if isinstance(value, int | float) and (limit := flag.bounds.broken_by(value)):
        return Read(value, Wrong("out-of-bounds", text, limit))
    if flag.fields is not None:
        # JSON's null is no object of a class.
        nullable = not flag.has_class and (flag.nullable or flag.name in NULL_IS_DEFAULT)
        if (value is None and nullable) or isinstance(value, str):
            return Read(value)
        return Read(value, check_fields(value, flag.fields, capabilities.fields[flag.fields]))
    return Read(value)


def _convert(flag: Flag, text: str) -> Any:
    match flag.kind:
        case "int":
            return int(text)
        case "float":
            return float(text)
        case "size":
            return read_size(text)
        case "size-or-auto":
            return -1 if text.strip() == "-1" or text.strip().lower() == "auto" else read_size(text)
        case "json":
            return json.loads(expand_sizes(text) if flag.has_class else text)
        case "json-or-str":
            looks_like_json = re.match(r"(?s)^\s*{.*}\s*$", text)
            return json.loads(text) if looks_like_json else text
        case "lora":
            return text if "=" in text and "," not in text else _lora(text)
        case "upper":
            return text.upper()
        case "name":
            return text.lower().replace("-", "_")
        case _:
            return text


def _lora(text: str) -> Any:
    value = json.loads(text)
    if not isinstance(value, dict) or not {"name", "path"} <= value.keys():
        raise ValueError(text)
    return value


def read_size(text: str) -> int:
    """An integer with an optional suffix: k, m, g, t count in thousands, K, M, G, T in 1024s.

    Raises:
        ValueError: it is neither, or has decimals before a suffix that counts in 1024s.

    """
    text = text.strip()
    found = SIZE.fullmatch(text)
    if found is None:
        return int(text)
    number, suffix = found.groups()
    power = POWER[suffix.lower()]
    return int(float(number) * pow(1000, power)) if suffix.islower() else int(number) * pow(1024, power)


def expand_sizes(text: str) -> str:
    """JSON with bare sizes (80m) written out, as vLLM accepts them in its configuration flags.

    Raises:
        ValueError: a size has decimals before a suffix that counts in 1024s.

    """
    parts = JSON_STRING.split(text)
    outside = [JSON_SIZE.sub(lambda found: str(read_size(found.group())), part) for part in parts[::2]]
    parts[::2] = outside
    return "".join(parts)


def check_fields(value: Any, name: str, fields: Mapping[str, tuple[str, ...]]) -> Wrong | None:
    """The first field of a JSON flag that its configuration class `name` refuses."""
    if not isinstance(value, dict):
        return Wrong("invalid-type", json.dumps(value), "a JSON object")
    for key, item in value.items():
        # vLLM turns dashes in the names of this one alone (engine/arg_utils.py, create_speculative_config).
        spelled = key.replace("-", "_") if name == "speculative-config" else key
        kinds = fields.get(spelled) or fields.get("*")
        if kinds is None:
            return Wrong("unknown-field", key, f"a field of {name}", nearest(key, fields))
        if not any(_fits(item, alternative) for alternative in kinds):
            options = " or ".join(_in_words(kind) for kind in kinds)
            return Wrong("invalid-field", f"{key}: {json.dumps(item)}", options)
    return None


def _in_words(kind: str) -> str:
    name, _, limits = kind.partition(" ")
    words = {"int": "an integer", "float": "a number", "str": "text", "bool": "true or false", "dict": "an object"}
    words |= {"list": "a list"}
    return words.get(name, kind.lstrip("=")) + (f" ({limits})" if limits and not kind.startswith("=") else "")


def _fits(value: Any, kind: str) -> bool:
    """Whether pydantic's lax mode takes a JSON value for a field of that type."""
    if kind.startswith("=="):
        return isinstance(value, int) and str(value) == kind[2:]
    if kind.startswith("="):
        return isinstance(value, str) and value == kind[1:]
    match kind:
        case "any":
            return True
        case "null":
            return value is None
        case "str":
            return isinstance(value, str)
        case "dict":
            return isinstance(value, dict)
        case "list":
            return isinstance(value, list)
        case "bool":
            return value in (0, 1) or (isinstance(value, str) and value.lower() in TRUTHS)
        case _:
            return _fits_number(value, *kind.split(" "))


def _fits_number(value: Any, kind: str, *limits: str) -> bool:
    """A number within limits such as `gt 0`; text that holds one counts."""
    try:
        number = float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return False
    if number is None or (kind == "int" and not number.is_integer()):
        return False
    bounds = Bounds(**{name: float(limit) for name, limit in zip(limits[::2], limits[1::2], strict=True)})
    return bounds.broken_by(number) is None
