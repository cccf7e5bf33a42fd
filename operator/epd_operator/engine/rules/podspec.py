"""Rules about the fields of the overlays on pods, with the table of an API server's own."""

from collections.abc import Iterator

from epd_operator.api import podspec
from epd_operator.api.finding import Severity
from epd_operator.api.podspec import Unfit
from epd_operator.engine.capabilities import nearest
from epd_operator.engine.rules.overlay import overlays
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

SOURCE = "the OpenAPI of Kubernetes' API server; api/podspec.json"


def _unfit(wiring: Wiring) -> Iterator[Unfit]:
    for found in overlays(wiring):
        yield from podspec.unfit(found.spec, f"{found.path}.spec", found.container)


def _meant(found: Unfit) -> str | None:
    """The field that a name is most likely a misspelling of."""
    return nearest(found.field, podspec.fields().types[found.parent]) if found.field else None


@rule(
    id="template-field-misspelled",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="Fields of a template are those of Kubernetes' pods.",
    why="The API server refuses the pods, or drops the field in silence.",
    source=SOURCE,
)
def field_misspelled(wiring: Wiring) -> Iterator[Broken]:
    """A field that Kubernetes does not have, and one like it that it has."""
    for found in _unfit(wiring):
        near = _meant(found)
        if near is not None:
            message = f"a {found.parent} of Kubernetes has no such field, so the pods would be refused"
            yield Broken(found.path, found.value, message, f"rename it to {near}")


@rule(
    id="template-field-unknown",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="Fields of a template are those of the Kubernetes release that the operator knows.",
    why="A cluster that is no newer refuses the pods, or drops the field in silence.",
    source=SOURCE,
)
def field_unknown(wiring: Wiring) -> Iterator[Broken]:
    """A field that is like none: a newer Kubernetes may have it."""
    for found in _unfit(wiring):
        if found.field and _meant(found) is None:
            release = podspec.fields().kubernetes
            message = f"a {found.parent} of Kubernetes {release} has no such field, so the pods may be refused"
            yield Broken(found.path, found.value, message, "remove it, unless the cluster is newer and has it")


@rule(
    id="template-field-value",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="Fields of a template have the type that Kubernetes gives them, and objects the fields that they need.",
    why="The API server refuses the pods.",
    source=SOURCE,
)
def field_value(wiring: Wiring) -> Iterator[Broken]:
    """A value of another type, or a sidecar without an image."""
    for found in _unfit(wiring):
        if not found.field:
            message = f"must be {found.wanted} in a {found.parent} of Kubernetes, so the pods would be refused"
            yield Broken(found.path, found.value, message, f"write it as {found.wanted}")


RULES = (field_misspelled, field_value, field_unknown)
