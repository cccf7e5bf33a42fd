"""Templates in which nothing that a user wrote can leave its place.

Every `{{ expression }}` comes out as JSON, which is YAML: the environment does it, no template can forget it. A name
that the context lacks is an error, never an empty string.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template, Undefined
from ruamel.yaml import YAML

_SURROGATES = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})")


def to_yaml(value: Any) -> str:
    """A value as JSON on one line, in ASCII, such that every YAML parser reads back the same.

    Raises TypeError or ValueError for what is no JSON (NaN, for one), UndefinedError for a name that is not there.
    """
    if isinstance(value, Undefined):
        str(value)  # raises, and says which name is missing
    text = json.dumps(value, allow_nan=False, default=_plain)
    return _joined(text) if "\\ud" in text else text


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    raise TypeError(f"{type(value).__name__} has no place in a manifest")


def _joined(text: str) -> str:
    r"""Write characters beyond U+FFFF as \UXXXXXXXX: YAML does not join JSON's pairs of surrogates."""
    out, position = [], 0
    while (start := text.find("\\", position)) >= 0:
        pair = _SURROGATES.match(text, start)
        if pair is None:
            out.append(text[position : start + 2])  # any other escape, its second character skipped with it
            position = start + 2
            continue
        high, low = int(pair[1], 16), int(pair[2], 16)
        out.append(text[position:start] + f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}")
        position = pair.end()
    return "".join(out) + text[position:]


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


def template(name: str) -> Template:
    """One of the package's templates, by file name."""
    return _environment().get_template(name)


def fill(file: str, /, **context: Any) -> dict[str, Any]:
    """Fill a template and read the one object that it describes."""
    text = template(file).render(**context)
    found = YAML(typ="safe", pure=True).load(text)
    if not isinstance(found, dict):
        raise TypeError(f"template {file} does not describe an object")
    return found
