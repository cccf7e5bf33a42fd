"""Kubernetes' fields of a pod, and what of an overlay is none of them.

The table is made from an API server's own OpenAPI (`make pod-schema`), never written by hand.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

TABLE = Path(__file__).parent / "podspec.json"
WORDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "quantity": "a quantity such as 1Gi",
    "int-or-string": "a number or text",
}

ALSO_REQUIRED = {"Container": ("image",)}
"""What the API server asks of a pod's template beyond its schema."""


class Unfit(NamedTuple):
    """One place of an overlay that Kubernetes would refuse."""

    path: str
    value: Any
    parent: str
    """The type that the place belongs to: PodSpec, Container ..."""
    field: str
    """The field that the parent does not have; empty where the value or what it lacks is wrong."""
    wanted: str = ""
    """What the value must be, in words; empty for a field that is not there."""


class Fields(NamedTuple):
    """The table."""

    kubernetes: str  # release that it was made from: 1.37
    types: Mapping[str, Mapping[str, str]]  # type -> field -> scalar, type, [item] or {value}
    required: Mapping[str, tuple[str, ...]]  # type -> fields that it must have


@functools.cache
def fields() -> Fields:
    """The committed table, read when it is first needed."""
    table = json.loads(TABLE.read_bytes())
    types = MappingProxyType({name: MappingProxyType(entry) for name, entry in table["types"].items()})
    return Fields(table["kubernetes"], types, {name: tuple(needed) for name, needed in table["required"].items()})


def unfit(spec: Mapping[str, Any], path: str, own: str) -> Iterator[Unfit]:
    """What of an overlay on a PodSpec, written at `path`, the API server would refuse.

    null removes a field and is always right. The container `own` is the operator's, so that it may be named in part.
    """
    return _in_object(spec, path, "PodSpec", own, partial=True)


def _in_any(value: Any, path: str, kind: str, parent: str, own: str, *, partial: bool) -> Iterator[Unfit]:
    """What of `value` is not of `kind`; `partial`: it is merged into something that has what it needs."""
    known = fields()
    if value is None:
        return
    if kind.startswith("[") and isinstance(value, list):
        for index, item in enumerate(value):
            is_own = path.endswith(".containers") and isinstance(item, Mapping) and item.get("name") == own
            yield from _in_any(item, f"{path}[{index}]", kind[1:-1], parent, own, partial=is_own)
    elif kind.startswith("{") and isinstance(value, Mapping):
        for key, item in value.items():
            yield from _in_any(item, f"{path}.{key}", kind[1:-1], parent, own, partial=False)
    elif kind in known.types and isinstance(value, Mapping):
        yield from _in_object(value, path, kind, own, partial=partial)
    elif not _fits(value, kind):
        words = "a list" if kind.startswith("[") else WORDS.get(kind, "an object")
        yield Unfit(path, value, parent, "", words)


def _in_object(value: Mapping[str, Any], path: str, kind: str, own: str, *, partial: bool) -> Iterator[Unfit]:
    known = fields()
    for key, item in value.items():
        if key in known.types[kind]:
            yield from _in_any(item, f"{path}.{key}", known.types[kind][key], kind, own, partial=partial)
        elif not key.startswith("$"):  # a directive of kubectl's patches, which is another matter
            yield Unfit(f"{path}.{key}", item, kind, key)
    for needed in () if partial else (*known.required.get(kind, ()), *ALSO_REQUIRED.get(kind, ())):
        if value.get(needed) is None:
            yield Unfit(path, dict(value), kind, "", f"an object with {needed}")


def _fits(value: Any, kind: str) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return number and float(value).is_integer()
        case "number":
            return number
        case "boolean":
            return isinstance(value, bool)
        case "quantity" | "int-or-string":
            return number or isinstance(value, str)
        case _:
            return kind == "object" and isinstance(value, Mapping)
