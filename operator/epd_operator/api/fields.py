"""The fields of the API by their place: what is known where, and what an unknown name may have meant."""

import difflib
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, TypeGuard, get_args

from pydantic import BaseModel

from epd_operator.api.deployment import EPDDeployment

Location = tuple[int | str, ...]

_COMMON = {"name", "key", "path", "type", "value", "metadata", "spec"}
"""Names that stand in many places: one of those says nothing about what was meant."""
_ABBREVIATIONS = {
    "tp": "tensor",
    "pp": "pipeline",
    "dp": "data",
    "tensorparallelism": "tensor",
    "pipelineparallelism": "pipeline",
    "dataparallelism": "data",
    "tensorparallelsize": "tensor",
    "pipelineparallelsize": "pipeline",
    "dataparallelsize": "data",
    "claim": "claimName",
    "pvc": "persistentVolumeClaim",
    "shmsize": "sharedMemorySize",
    "ipc": "tensorIPC",
}
"""What people write for what, in lower case; used where the second is known and the first is not."""


def path_of(location: Location) -> str:
    """Write a location as users do: spec.encode.args[2], spec.encode.resources.limits[nvidia.com/gpu]."""
    if not location:
        return "document"
    path = ""
    for part in location:
        if isinstance(part, int) or not part.replace("_", "").replace("-", "").isalnum():
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path


def model_at(location: Location) -> type[BaseModel] | None:
    """The API type of the object at a location; None where the API has no type of its own there."""
    model: type[BaseModel] = EPDDeployment
    for part in location:
        if isinstance(part, int):
            continue
        field = next((f for n, f in model.model_fields.items() if (f.alias or n) == part), None)
        inner = _model_in(field.annotation) if field else None
        if inner is None:
            return None
        model = inner
    return model


def names_of(model: type[BaseModel] | None) -> tuple[str, ...]:
    """The fields of a type as users write them, most telling first."""
    return tuple(field.alias or name for name, field in model.model_fields.items()) if model else ()


def required_names(model: type[BaseModel] | None) -> tuple[str, ...]:
    """The fields of a type that must be written."""
    fields = model.model_fields.items() if model else ()
    return tuple(field.alias or name for name, field in fields if field.is_required())


def choices_at(location: Location) -> tuple[str, ...]:
    """The values of the enumeration at a location; none where it is of another type."""
    model = model_at(location[:-1])
    for name, field in model.model_fields.items() if model else ():
        if (field.alias or name) == location[-1]:
            kinds = (field.annotation, *get_args(field.annotation))
            return tuple(str(value) for kind in kinds if _is_enumeration(kind) for value in kind)
    return ()


def nearest_name(parent: Location, name: str) -> str | None:
    """The field of the object at `parent` that is most like an unknown `name`."""
    known = {_plain(field): field for field in names_of(model_at(parent))}
    plain = _plain(name)
    if plain in known:
        return known[plain]
    meant = _ABBREVIATIONS.get(plain)
    if meant in known.values():
        return meant
    close = difflib.get_close_matches(plain, known, n=1, cutoff=0.6)
    return known[close[0]] if close else None


def place_of(parent: Location, name: str) -> str | None:
    """The path of the field of that name nearest to `parent`; None where there is none, or the name says too little."""
    plain = _plain(_ABBREVIATIONS.get(_plain(name), name))
    if plain in _COMMON:
        return None
    own = path_of(parent)
    places = [place for place in _places(EPDDeployment, "") if _plain(place.rpartition(".")[2]) == plain]
    return max(places, key=lambda place: _shared(place, own), default=None)


def _is_enumeration(kind: Any) -> TypeGuard[type[StrEnum]]:
    return isinstance(kind, type) and issubclass(kind, StrEnum)


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _shared(one: str, other: str) -> int:
    """How many leading parts two paths share."""
    count = 0
    for left, right in zip(one.split("."), other.split("."), strict=False):
        if left != right:
            break
        count += 1
    return count


def _places(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        place = f"{prefix}.{field.alias or name}" if prefix else field.alias or name
        if place.startswith(("status", "metadata")):
            continue
        yield place
        if (inner := _model_in(field.annotation)) is not None:
            yield from _places(inner, place)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The API type inside an annotation such as `list[EnvVar] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _model_in(arg)) is not None), None)
