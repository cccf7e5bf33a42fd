"""Which fields of an object a manager owns, and whether they are what it wants them to be. Pure.

The API server keeps that account in metadata.managedFields
(https://kubernetes.io/docs/reference/using-api/server-side-apply/; its format is that of structured-merge-diff). It is
the only one that survives restarts and tells both what others changed and what was applied once and is wanted no more.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from epd_operator.api.quantity import Quantity
from epd_operator.cluster.resources import Object

_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "managedFields")
_QUANTITIES = ("limits", "requests", "sizeLimit", "divisor")
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class _Whole:
    """A value that is owned with all that is in it, and so with what the API server put in: defaults."""

    value: Any


def as_wanted(live: Object, wanted: Object, manager: str) -> bool:
    """Whether `manager` owns exactly the fields of `wanted` in `live`, each with its wanted value.

    Fields that others added beside them do not count, nor does what the API server makes of a value: defaults inside
    it, the canonical form of a quantity.
    """
    trees = [
        entry.get("fieldsV1") or {}
        for entry in live["metadata"].get("managedFields") or []
        if entry.get("manager") == manager and not entry.get("subresource")
    ]
    owned = _extract(_merged(trees), live) if trees else {}
    return isinstance(owned, dict) and _same(_content(wanted), _content(owned), quantity=False)


def _content(body: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in (body.get("metadata") or {}).items() if key not in _IDENTITY}
    rest = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    return {**rest, "metadata": metadata}


def _merged(trees: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for tree in trees:
        for key, inner in tree.items():
            merged[key] = _merged((merged[key], inner)) if key in merged else inner
    return merged


def _extract(fields: Mapping[str, Any], live: Any) -> Any:
    """What the tree of fields says of a value."""
    inner = {key: tree for key, tree in fields.items() if key != "."}
    if isinstance(live, dict) and inner:
        names = ((key[2:], tree) for key, tree in inner.items() if key.startswith("f:"))
        return {name: _extract(tree, live[name]) for name, tree in names if name in live}
    if isinstance(live, list) and inner:
        return _extract_items(inner, live)
    return _Whole(live)


def _extract_items(fields: Mapping[str, Any], live: list[Any]) -> list[Any]:
    keyed = [(json.loads(key[2:]), tree) for key, tree in fields.items() if key.startswith("k:")]
    values = [json.loads(key[2:]) for key in fields if key.startswith("v:")]
    items: list[Any] = []
    for item in live:
        if isinstance(item, dict):
            tree = next((tree for keys, tree in keyed if keys.items() <= item.items()), None)
            if tree is not None:
                items.append(_extract(tree, item))
        elif item in values:
            items.append(item)
    return items


def _same(wanted: Any, owned: Any, *, quantity: bool) -> bool:
    if isinstance(owned, _Whole):
        return _covers(wanted, owned.value, quantity=quantity)
    if isinstance(wanted, dict) and isinstance(owned, dict):
        return all(
            _same(wanted.get(name, _ABSENT), owned.get(name, _ABSENT), quantity=quantity or name in _QUANTITIES)
            for name in wanted.keys() | owned.keys()
        )
    if isinstance(wanted, list) and isinstance(owned, list):
        return len(wanted) == len(owned) and all(
            _same(*pair, quantity=quantity) for pair in zip(wanted, owned, strict=True)
        )
    return _covers(wanted, owned, quantity=quantity)


def _covers(wanted: Any, live: Any, *, quantity: bool) -> bool:
    """Whether a live value is the wanted one, with no more than fields added inside it."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(
            _covers(value, live.get(name, _ABSENT), quantity=quantity or name in _QUANTITIES)
            for name, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(
            _covers(*pair, quantity=quantity) for pair in zip(wanted, live, strict=True)
        )
    if wanted is _ABSENT or live is _ABSENT:
        other = live if wanted is _ABSENT else wanted
        return other is None or other in ({}, [])
    return (type(wanted) is type(live) and bool(wanted == live)) or (quantity and _same_quantity(wanted, live))


def _same_quantity(wanted: Any, live: Any) -> bool:
    try:
        return Quantity(str(wanted)).amount == Quantity(str(live)).amount
    except ValueError:
        return False
