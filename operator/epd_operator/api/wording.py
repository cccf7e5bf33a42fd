"""What is wrong with one value and what to write instead, in words: pydantic finds it, these are the sentences."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import ErrorDetails

from epd_operator.api.base import KEY, LABEL_VALUE
from epd_operator.api.deployment import NAMESPACE
from epd_operator.api.device import RESOURCE_NAME
from epd_operator.api.fields import Location, choices_at, model_at, names_of, path_of


class Words(NamedTuple):
    """Both halves of a finding, without final full stops."""

    message: str
    """Completes "the value ..."."""
    remedy: str
    """An instruction."""


_MEANT = {
    "gpu": ("CUDA", "Accelerator"),
    "nvidia": ("CUDA",),
    "cuda": ("Accelerator",),
    "rocm": ("Accelerator",),
    "xpu": ("Accelerator",),
    "amd": ("ROCm",),
    "hip": ("ROCm",),
    "intel": ("XPU",),
    "shm": ("torch_shm",),
    "rpc": ("direct_rpc",),
    "rollingupdate": ("Proportional",),
    "bluegreen": ("BlueGreen",),
}
"""What people write for what, in lower case."""

_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
_WORD = r"^[^\s\x00-\x1f-][^\s\x00-\x1f]*$"
_DOMAIN = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
PATTERNS: dict[str, Words] = {
    _NAME: Words("is not a legal Kubernetes name", "use lower-case letters, digits and dashes"),
    _WORD: Words("has spaces or begins with a dash", "write it without spaces, and without a dash in front"),
    _DOMAIN: Words(
        "is not a host name alone (lower case, no scheme, port, path or wildcard)", "list each host by its name"
    ),
    r"^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$": Words(
        "is not a key of a Secret", "use letters, digits, dashes, dots and underscores, not two dots first"
    ),
    NAMESPACE: Words("is not a name of a namespace", "use lower-case letters, digits and dashes"),
    RESOURCE_NAME: Words("is not an extended resource", "write it with its domain, for example nvidia.com/gpu"),
    LABEL_VALUE: Words(
        "is not a value of a label",
        "use letters, digits, dashes, dots and underscores, with a letter or digit at both ends",
    ),
    KEY: Words(
        "is not a key of a label or annotation",
        "use letters, digits, dashes, dots and underscores, after domain/ if any",
    ),
    r"^[A-Za-z0-9_.]+$": Words("is not an architecture", "write it as in the model's config.json"),
    r"^[^\s]+$": Words("has spaces, and an image reference has none", "write it without spaces"),
    r"^[A-Za-z][A-Za-z0-9_]*$": Words(
        "is not a name of a connector", "write vLLM's own name, for example ECExampleConnector or NixlConnector"
    ),
    r"^[-._a-zA-Z][-._a-zA-Z0-9]*$": Words(
        "is not a name of an environment variable", "use letters, digits and underscores, no digit first"
    ),
    r"^/": Words("is not an absolute path", "begin it with a slash"),
    r"^(Memory)?$": Words("is no medium of an emptyDir", "write Memory, or remove it for the node's default"),
}
"""A sentence for each pattern of the API; a test holds it complete."""


def words_for(detail: ErrorDetails) -> Words:
    """What is wrong with the value of one of pydantic's errors."""
    write = _WRITERS.get(detail["type"])
    if write is not None:
        return write(detail["input"], detail.get("ctx", {}), detail["loc"])
    message = detail["msg"]
    return Words(message[:1].lower() + message[1:], "correct the value")


def kind_of(value: object) -> str:
    """What a value is, for people."""
    if isinstance(value, bool):
        return "true or false"
    kinds = (((str,), "text"), ((int, float), "a number"), ((list, tuple), "a list"), ((Mapping,), "an object"))
    return next((name for types, name in kinds if isinstance(value, types)), "null" if value is None else "no value")


Context = Mapping[str, Any]
Writer = Callable[[Any, Context, Location], Words]


def _text(value: Any, _: Context, location: Location) -> Words:
    message = f"is {kind_of(value)}, and must be text"
    if path_of(location) == "spec.engine.version":
        return Words(message, 'write it in quotes with three numbers, for example "0.33.0"')
    if isinstance(value, bool):
        return Words(message, "put what you wrote in quotes: yes, on, y and their opposites are truth values too")
    if isinstance(value, int | float):
        return Words(message, f"put it in quotes: {_quoted(value)}")
    return Words(message, "write one text")


def _whole(value: Any, _: Context, __: Location) -> Words:
    message = f"is {kind_of(value)}, and must be a whole number"
    if isinstance(value, float):
        message = "has a fraction or a decimal point, and must be a whole number"
        remedy = f"write {int(value)}" if value.is_integer() and abs(value) < 1e15 else "write a whole number"
        return Words(message, remedy)
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,18}", value):
        return Words(message, f"write {value} without quotes")
    return Words(message, "write a whole number")


def _truth(value: Any, _: Context, __: Location) -> Words:
    off = str(value).lower() in ("false", "no", "off", "0", "")
    return Words(
        f"is {kind_of(value)}, and must be true or false", f"write {'false' if off else 'true'} without quotes"
    )


def _list(value: Any, _: Context, location: Location) -> Words:
    message = f"is {kind_of(value)}, and must be a list"
    item = model_at(location)
    if item is not None:
        return Words(message, f"write a list of {{{', '.join(f'{name}: ...' for name in names_of(item)[:2])}}}")
    if isinstance(value, str | int | float):
        return Words(message, f"write [{_quoted(value)}]"[:200])
    return Words(message, "write each item in a line of its own, after a dash")


def _object(value: Any, _: Context, location: Location) -> Words:
    message = f"is {kind_of(value)}, and must be an object"
    names = names_of(model_at(location))
    if names and isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
        first = _meant(value, choices_at((*location, names[0]))) or value
        return Words(message, f"write {{{names[0]}: {first}}}"[:200])
    return Words(message, f"write an object of {', '.join(names)}" if names else "write names and values")


def _choice(value: Any, context: Context, _: Location) -> Words:
    choices = re.findall(r"'([^']*)'", str(context.get("expected", "")))
    message = f"is not {choices[0]}" if len(choices) == 1 else f"is none of {_listed(choices, 'and')}"
    meant = _meant(value, choices)
    return Words(message, f"write {meant}" if meant else f"use {_listed(choices, 'or')}")


def _meant(value: object, choices: Sequence[str]) -> str | None:
    if not isinstance(value, str):
        return None
    plain = value.strip().lower().replace("-", "").replace("_", "")
    same = next((choice for choice in choices if choice.lower().replace("_", "") == plain), None)
    return same or next((choice for choice in _MEANT.get(plain, ()) if choice in choices), None)


def _pattern(value: Any, context: Context, _: Location) -> Words:
    pattern = str(context.get("pattern", ""))
    words = PATTERNS.get(pattern, Words("has characters that are not allowed here", "write it without them"))
    if pattern == _NAME and (name := _legal_name(value)):
        return Words(words.message, f"{words.remedy}, for example {name}")
    if pattern == _DOMAIN and (host := _host(value)):
        return Words(words.message, f"write {host}")
    if pattern == LABEL_VALUE and (label := re.sub(r"[^A-Za-z0-9_.]+", "-", value).strip("-._")):
        return Words(words.message, f"{words.remedy}, for example {label}")
    return words


def _legal_name(value: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", value.lower()[:64]).strip("-")


def _host(value: str) -> str | None:
    found = re.fullmatch(r"(?:[a-z]+://)?([a-z0-9][-a-z0-9.]*[a-z0-9])(?::\d+)?(?:/.*)?", value.lower())
    return found[1] if found else None


def _quantity(value: Any, _: Context, __: Location) -> Words:
    message = "is no quantity of 0 or more such as 512Mi, 4Gi or 2"
    if isinstance(value, float):
        return Words("is a number with a decimal point, and must be a whole number or text", f"write {_quoted(value)}")
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kKmMgGtTpP])i?[bB]?\s*", value)
        if found:
            return Words(message, f"write {found[1]}{found[2].upper()}i")
    return Words(message, "write a number with a unit, for example 4Gi")


def _bound(word: str, key: str, remedy: str) -> Writer:
    def write(_: Any, context: Context, __: Location) -> Words:
        limit = context.get(key)
        return Words(f"must be {word} {limit}", f"use {limit} or {remedy}")

    return write


def _too_long(value: Any, context: Context, _: Location) -> Words:
    what = "characters" if isinstance(value, str) else "items"
    message = f"has {len(value)} {what}, and at most {context.get('max_length')} are allowed"
    return Words(message, "shorten it" if isinstance(value, str) else "remove some")


def _fixed(message: str, remedy: str) -> Writer:
    return lambda _value, _context, _location: Words(message, remedy)


def _sources(value: Any, _: Context, location: Location) -> Words:
    names = _listed(list(names_of(model_at(location))), "and")
    count = len(value) if isinstance(value, Mapping) else 0
    remedy = "keep one of them" if count > 1 else "name one of them"
    return Words(f"needs exactly one of {names}", remedy)


def _duplicate(_: Any, context: Context, __: Location) -> Words:
    return Words(f"has {context.get('name')} twice, and the API server refuses that", "remove one of them")


_WRITERS: dict[str, Writer] = {
    "string_type": _text,
    "int_type": _whole,
    "int_parsing": _whole,
    "int_from_float": _whole,
    "bool_type": _truth,
    "list_type": _list,
    "model_type": _object,
    "dict_type": _object,
    "enum": _choice,
    "literal_error": _choice,
    "string_pattern_mismatch": _pattern,
    "string_too_short": _fixed("is empty", "write a value, or remove the line"),
    "string_too_long": _too_long,
    "string_unicode": _fixed("is not valid Unicode", "write it as UTF-8 text"),
    "too_long": _too_long,
    "greater_than_equal": _bound("at least", "ge", "more"),
    "less_than_equal": _bound("at most", "le", "less"),
    "quantity": _quantity,
    "int_or_percent": _fixed(
        "is neither a whole number of 0 or more nor a percentage up to 100%", "write it as 1 or as 25%"
    ),
    "one_source": _sources,
    "replicas_or_scaling": _fixed(
        "replicas and scaling exclude each other: with scaling, an autoscaler owns the number",
        "remove replicas or remove scaling",
    ),
    "duplicate": _duplicate,
    "host_path": _fixed("has .. in it, which Kubernetes refuses", "write the path without .."),
    "invalid_key": _fixed("is no name of a field, which is text", "remove it, or write its name in quotes"),
}


def _quoted(value: object) -> str:
    return json.dumps(
        value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    )


def _listed(words: list[str], last: str) -> str:
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else "nothing"
