"""A document becomes an EPDDeployment, or findings that say what is wrong with its shape."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from epd_operator.api.deployment import EPDDeployment
from epd_operator.api.fields import Location, model_at, names_of, nearest_name, path_of, place_of, required_names
from epd_operator.api.finding import Finding, Severity
from epd_operator.api.role import Role
from epd_operator.api.wording import words_for

MAX_DEPTH = 64
MAX_NODES = 100_000
"""Bounds on a document: far above any real one, far below what aliases of YAML can expand to."""
METADATA = frozenset(
    {
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""Kubernetes' ObjectMeta. Only files are held to it: an API server has checked its own, and may know more."""


SHAPE_RULES = {
    "document-too-large": "An object has at most 100,000 values and 64 levels, YAML aliases written out.",
    "missing-field": "Every required field is there.",
    "unknown-field": "Every field is one of the API, in its place.",
    "invalid-value": "Every value has the type, form and bounds of its field.",
    "replicas-or-scaling": "A role has replicas or scaling, not both.",
    "null-role": "A role is an object or absent, not null.",
}
"""Ids of the findings that are made here, and what each demands; the API server refuses the same."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """The outcome: a deployment, or None with at least one error among the findings."""

    deployment: EPDDeployment | None
    findings: tuple[Finding, ...] = ()


def parse(document: object) -> Parsed:
    """Read one EPDDeployment. `document` is the object as decoded from YAML or JSON. Raises nothing."""
    if (problem := too_large(document)) is not None:
        return Parsed(None, (problem,))
    metadata = list(_unknown_metadata(document))
    findings = [*metadata, *_null_roles(document)]
    try:
        deployment = EPDDeployment.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False)
        meant = _meant(details, [finding.path.rpartition(".")[2] for finding in metadata])
        told = set(meant.values())
        findings += [_finding(detail, meant.get(detail["loc"])) for detail in details if detail["loc"] not in told]
        return Parsed(None, tuple(findings))
    return Parsed(None if findings else deployment, tuple(findings))


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


def _member(document: object, name: str) -> Mapping[str, Any]:
    """An object inside a document; empty where there is none."""
    member = document.get(name) if isinstance(document, Mapping) else None
    return member if isinstance(member, Mapping) else {}


def _null_roles(document: object) -> Iterator[Finding]:
    """Refuse `encode:` alone: the API server drops nulls, so there would be no encoder. Else null is the default."""
    spec = _member(document, "spec")
    for role in Role:
        if role in spec and spec[role] is None:
            yield Finding(
                "null-role",
                Severity.ERROR,
                f"spec.{role}",
                "null",
                f"null means absent (the API server drops it), so there would be no {role}",
                f"write {role}: {{}} for defaults, or remove the line",
            )


def _unknown_metadata(document: object) -> Iterator[Finding]:
    metadata = _member(document, "metadata")
    for name, value in metadata.items() if metadata.get("uid") is None else ():
        if isinstance(name, str) and name not in METADATA:
            close = difflib.get_close_matches(name, METADATA, n=1, cutoff=0.6)
            remedy = f"rename it to {close[0]}" if close else "remove it, or make it a label or an annotation"
            path = path_of(("metadata", name))
            message = "is not a field of Kubernetes' metadata"
            yield Finding("unknown-field", Severity.ERROR, path, value, message, remedy)


def _finding(detail: ErrorDetails, meant: Location | None) -> Finding:
    location = detail["loc"]
    if location[-1:] == ("[key]",):
        location = location[:-1]
    path = path_of(location)
    if detail["type"] == "missing":
        return Finding("missing-field", Severity.ERROR, path, None, "is required", _how_to_set(location))
    if detail["type"] == "extra_forbidden":
        message = "is not a field of this API"
        return Finding("unknown-field", Severity.ERROR, path, detail["input"], message, _instead(location, meant))
    words = words_for(detail)
    rule = "replicas-or-scaling" if detail["type"] == "replicas_or_scaling" else "invalid-value"
    return Finding(rule, Severity.ERROR, path, detail["input"], words.message, words.remedy)


def _meant(details: list[ErrorDetails], unknown_metadata: list[str]) -> dict[Location, Location]:
    """Unknown field -> the required one that is missing beside it: one mistake, so it is told once."""
    missing = [detail["loc"] for detail in details if detail["type"] == "missing"]
    unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
    meant: dict[Location, Location] = {}
    for location in [*unknown, *(("metadata", name) for name in unknown_metadata)]:
        parent, name = location[:-1], str(location[-1])
        beside = [place for place in missing if place[:-1] == parent and place not in meant.values()]
        near = nearest_name(parent, name)
        if beside:
            meant[location] = min(beside, key=lambda place: place[-1] != near)
    return meant


def _how_to_set(location: Location) -> str:
    """How to write a missing field."""
    names = required_names(model_at(location))
    return f"add {location[-1]} with {' and '.join(names)}" if names else f"add {location[-1]}"


def _instead(location: Location, meant: Location | None) -> str:
    """The remedy for an unknown field: the nearest name in its place, or the place that knows the name."""
    parent, name = location[:-1], str(location[-1])
    place = place_of(parent, name)
    inside = f"{path_of(parent)}." if parent else ""
    if place is not None and inside and place.startswith(inside) and place.count(".") > inside.count("."):
        return f"move it to {place}"
    near = nearest_name(parent, name)
    if near is not None:
        return f"rename it to {near}"
    if meant is not None:
        return f"replace it by {meant[-1]}, which is required"
    if place is not None:
        return f"move it to {place}"
    names = names_of(model_at(parent))
    return f"remove it, or use one of {', '.join(sorted(names))}" if names else "remove it"
