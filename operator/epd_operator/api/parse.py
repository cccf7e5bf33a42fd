"""A document becomes an EPDDeployment, or findings that say what is wrong with its shape."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from epd_operator.api.deployment import EPDDeployment
from epd_operator.api.finding import Finding, Severity

MAX_DEPTH = 64
MAX_NODES = 100_000
"""Bounds on a document: far above any real one, far below what aliases of YAML can expand to."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The outcome: a deployment without errors of shape, or None with at least one error among the findings."""

    deployment: EPDDeployment | None
    findings: tuple[Finding, ...] = ()


def parse(document: Mapping[str, Any]) -> Parsed:
    """Read one EPDDeployment. `document` is the object as decoded from YAML or JSON. Raises nothing."""
    if (problem := too_large(document)) is not None:
        return Parsed(None, (problem,))
    nulls = tuple(_nulls(document.get("spec"), "spec"))
    try:
        return Parsed(EPDDeployment.model_validate(document), nulls)
    except ValidationError as error:
        return Parsed(None, (*nulls, *(_finding(detail) for detail in error.errors(include_url=False))))


def too_large(document: object) -> Finding | None:
    """Refuse what is nested or repeated without measure, before anything walks it recursively."""
    stack, nodes = [(document, 1)], 0
    while stack:
        value, depth = stack.pop()
        nodes += 1
        if depth > MAX_DEPTH or nodes > MAX_NODES:
            return Finding(
                "document-too-large",
                Severity.ERROR,
                "spec",
                None,
                f"has more than {MAX_NODES} values or {MAX_DEPTH} levels once its YAML aliases are expanded",
                "write it without nested aliases",
            )
        if isinstance(value, Mapping):
            stack.extend((item, depth + 1) for item in value.values())
        elif isinstance(value, list | tuple):
            stack.extend((item, depth + 1) for item in value)
    return None


def _nulls(value: object, path: str) -> Iterator[Finding]:
    """Warn of nulls: the API server drops them, so `encode:` alone is no encoder."""
    if not isinstance(value, Mapping):
        return
    for key, item in value.items():
        if key in ("template", "extraConfig"):
            continue
        if item is None:
            yield Finding(
                "null-field",
                Severity.WARNING,
                f"{path}.{key}",
                "null",
                "null means that the field is absent: the API server drops it",
                "remove the line, or write {} for an object with defaults",
            )
        else:
            yield from _nulls(item, f"{path}.{key}")


def _finding(detail: ErrorDetails) -> Finding:
    path = path_of(detail["loc"])
    value = detail["input"] if detail["type"] != "missing" else None
    if detail["type"] == "missing":
        return Finding("missing-field", Severity.ERROR, path, None, "is required", "set it")
    if detail["type"] == "extra_forbidden":
        parent, name = detail["loc"][:-1], str(detail["loc"][-1])
        return Finding(
            "unknown-field", Severity.ERROR, path, value, "is not a field of this API", _nearest(parent, name)
        )
    if detail["type"] == "replicas_or_scaling":
        return Finding(
            "replicas-or-scaling", Severity.ERROR, path, value, detail["msg"], "remove replicas or remove scaling"
        )
    message = detail["msg"][:1].lower() + detail["msg"][1:]
    return Finding("invalid-value", Severity.ERROR, path, value, message, "correct the value")


def path_of(location: tuple[int | str, ...]) -> str:
    """Write a location as users do: spec.encode.args[2]."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path


def _nearest(parent: tuple[int | str, ...], name: str) -> str:
    """The remedy for an unknown field: the nearest name in its place, or the place that knows the name."""
    here = _fields(EPDDeployment, parent)
    by_lower = {known.lower(): known for known in here}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    if close:
        return f"did you mean {by_lower[close[0]]}?"
    elsewhere = [place for place in _places(EPDDeployment, "") if place.rsplit(".", 1)[-1].lower() == name.lower()]
    if elsewhere:
        return f"did you mean {' or '.join(elsewhere[:3])}?"
    return f"known here: {', '.join(sorted(here))}" if here else "remove it"


def _fields(model: type[BaseModel], location: tuple[int | str, ...]) -> list[str]:
    for part in location:
        if isinstance(part, int):
            continue
        field = next((f for n, f in model.model_fields.items() if (f.alias or n) == part), None)
        inner = _model_in(field.annotation) if field else None
        if inner is None:
            return []
        model = inner
    return [field.alias or name for name, field in model.model_fields.items()]


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
