"""Templates in which nothing that a user wrote can leave its place.

Every `{{ expression }}` comes out as JSON, which is YAML: the environment does it, no template can forget it. A name
that the context lacks is an error, never an empty string.
"""

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined, Undefined
from pydantic import BaseModel

_NOT_ASCII = re.compile(r"[^ -~]")
_MAX_PLAIN_KEY = 512
"""libyaml finds the colon after a key only within 1024 characters, unless the key is marked by a question mark."""


def to_yaml(value: Any) -> str:
    """A value as JSON on one line, in such ASCII that every YAML parser reads back the same.

    Raises TypeError or ValueError for what JSON cannot say, UndefinedError for a name that the context lacks.
    """
    if isinstance(value, str):
        return _quoted(value)
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, BaseModel):
        return to_yaml(value.model_dump(mode="json", by_alias=True, exclude_none=True))
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)}: {to_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_yaml, value)) + "]"
    if isinstance(value, Undefined):
        str(value)  # raises, with the name that is missing
    raise TypeError(f"{type(value).__name__} has no place in a manifest")


def _quoted(text: str) -> str:
    return _NOT_ASCII.sub(_escaped, json.dumps(text, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    """YAML does not join JSON's pairs of surrogates, so a character beyond U+FFFF is written whole."""
    code = ord(found[0])
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError(f"U+{code:04X} is half a character and no text")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _float(value: float) -> str:
    """YAML 1.1 takes 1e+16 for a text: its floats have a point."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is no JSON number")
    mantissa, exponent, power = repr(value).partition("e")
    return (mantissa if "." in mantissa else f"{mantissa}.0") + exponent + power


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{key!r} is no key: keys are text")
    return f"? {_quoted(key)} " if len(key) > _MAX_PLAIN_KEY else _quoted(key)


@cache
def _environment() -> Environment:
    # Autoescaping is for HTML; here `finalize` turns every value into JSON.
    return Environment(  # noqa: S701
        loader=PackageLoader("epd_operator.manifests"),
        undefined=StrictUndefined,
        finalize=to_yaml,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def fill(file: str, /, **context: Any) -> dict[str, Any]:
    """Fill a template of the package and read the one object that it describes."""
    text = _environment().get_template(file).render(**context)
    found = yaml.load(text, Loader=yaml.CSafeLoader)
    if not isinstance(found, dict):
        raise TypeError(f"template {file} does not describe an object")
    return found
