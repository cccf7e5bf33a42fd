"""Templates in which nothing that a user wrote can leave its place.

No `{{ expression }}` is ever read as YAML: a mark stands in its place while the template is read, and then its value
takes the mark's place. The environment does it, no template can forget it. A name that the context lacks is an error,
never an empty string.
"""

import math
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined, Undefined, pass_context
from jinja2.runtime import Context
from pydantic import BaseModel

_MARK = "\ue000"
"""Begins what stands in a value's place: a character for private use, which no template has."""
_VALUES = "values_of_this_filling"
_HALF = re.compile("[\ud800-\udfff]")


def plain(value: Any) -> Any:
    """A value as JSON has it, in containers of its own.

    Raises TypeError or ValueError for what JSON cannot say, UndefinedError for a name that the context lacks.
    """
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is no JSON number")
        return value
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="json", by_alias=True, exclude_none=True))
    if isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Undefined):
        str(value)  # raises, with the name that is missing
    raise TypeError(f"{type(value).__name__} has no place in a manifest")


def _text(value: str) -> str:
    if half := _HALF.search(value):
        raise ValueError(f"U+{ord(half[0]):04X} is half a character and no text")
    return str.__str__(value)  # without the class that it may have


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{key!r} is no key: keys are text")
    return _text(key)


@pass_context
def _held(context: Context, value: Any) -> str:
    """Keep a value, and leave a mark."""
    values: list[Any] = context[_VALUES]
    values.append(plain(value))
    return f'"{_MARK}{len(values) - 1}"'


@cache
def _environment() -> Environment:
    # Autoescaping is for HTML; here `finalize` keeps every value out of the text.
    return Environment(  # noqa: S701
        loader=PackageLoader("epd_operator.manifests"),
        undefined=StrictUndefined,
        finalize=_held,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@lru_cache(maxsize=256)
def _shape(text: str) -> Any:
    """The template as read, with marks: the same for all objects that took the same branches."""
    return yaml.load(text, Loader=yaml.CSafeLoader)


def _filled(shape: Any, values: list[Any]) -> Any:
    if isinstance(shape, dict):
        return {_filled(key, values): _filled(item, values) for key, item in shape.items()}
    if isinstance(shape, list):
        return [_filled(item, values) for item in shape]
    if isinstance(shape, str) and shape.startswith(_MARK):
        return values[int(shape[len(_MARK) :])]
    return shape


def fill(file: str, /, **context: Any) -> dict[str, Any]:
    """Fill a template of the package and read the one object that it describes."""
    values: list[Any] = []
    text = _environment().get_template(file).render(context, **{_VALUES: values})
    found = _filled(_shape(text), values)
    if not isinstance(found, dict):
        raise TypeError(f"template {file} does not describe an object")
    return found
