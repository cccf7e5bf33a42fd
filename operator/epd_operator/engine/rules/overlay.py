"""Rules about the overlays on pods: what they may not change, and what cannot be merged."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from epd_operator.api import names, overlay
from epd_operator.api.finding import Severity
from epd_operator.api.pod import PodTemplate
from epd_operator.engine.environment import Variable, wired_variables
from epd_operator.engine.rules.environment import FORBIDDEN
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.site import POD
from epd_operator.engine.wiring import Wiring

_NEVER_REMOVED = (".containers", ".env", ".ports")
"""Lists that null, which removes a field elsewhere, may not remove."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """One overlay of an object."""

    path: str
    """spec.encode.template and so on."""
    template: PodTemplate
    container: str
    """Name of the operator's own container in that pod."""
    wired: Mapping[str, Variable]
    """Variables of that container that may not be replaced."""

    @property
    def spec(self) -> Mapping[str, Any]:
        """What it says of the pod's spec."""
        return self.template.spec or {}

    def own_containers(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """What the overlay says of the operator's own container, with the place."""
        containers = self.spec.get("containers")
        for index, item in enumerate(containers if isinstance(containers, list) else ()):
            if isinstance(item, Mapping) and item.get("name") == self.container:
                yield f"{self.path}.spec.containers[{index}]", item


def overlays(wiring: Wiring) -> Iterator[Overlay]:
    """Every overlay that an object has."""
    for role, instance in wiring.instances.items():
        if instance.spec.template is not None:
            wired = wired_variables(wiring, instance, POD)
            yield Overlay(f"spec.{role}.template", instance.spec.template, overlay.ENGINE, wired)
    proxy = wiring.deployment.spec.proxy
    if proxy is not None and proxy.template is not None:
        yield Overlay("spec.proxy.template", proxy.template, names.PROXY, {})


@rule(
    id="template-clash-with-wiring",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="A template does not change what the operator decides: command line, image, selector labels, grace period.",
    why="The overlay would be ignored there, or the pods would not be found, probed, drained or protected any more.",
    source="the plan",
)
def template_clash(wiring: Wiring) -> Iterator[Broken]:
    """A protected label, field or variable in an overlay."""
    for found in overlays(wiring):
        yield from _metadata_clashes(found)
        protected = overlay.protected_fields(found.container)
        for field in sorted(found.spec.keys() & protected.keys()):
            yield Broken(f"{found.path}.spec.{field}", found.spec[field], protected[field], "remove it")
        for path, container in found.own_containers():
            for field in sorted(container.keys() & overlay.CONTAINER_FIELDS.keys()):
                yield Broken(f"{path}.{field}", container[field], overlay.CONTAINER_FIELDS[field], "remove it")
            yield from _env_clashes(found, path, container.get("env"))
            yield from _port_clashes(path, container.get("ports"))


def _metadata_clashes(found: Overlay) -> Iterator[Broken]:
    metadata = found.template.metadata
    for kind, entries in (
        ("labels", metadata and metadata.labels),
        ("annotations", metadata and metadata.annotations),
    ):
        for key in filter(overlay.reserved, entries or {}):
            message = f"{key} is the operator's: selectors and routing depend on it"
            yield Broken(f"{found.path}.metadata.{kind}", key, message, "use a name of your own")


def _env_clashes(found: Overlay, path: str, env: Any) -> Iterator[Broken]:
    for index, item in enumerate(env if isinstance(env, list) else ()):
        name = item.get("name") if isinstance(item, Mapping) else None
        if not isinstance(name, str):
            continue
        place = f"{path}.env[{index}]"
        own = found.wired.get(name)
        if own is not None and (own.value is None or own.value != item.get("value")):
            message = f"the operator sets it to {own.shown}: {own.reason}"
            yield Broken(place, name, message, "remove it")
        elif own is None and found.container == overlay.ENGINE and name in FORBIDDEN and item.get("value") != "0":
            yield Broken(place, name, FORBIDDEN[name], "remove it")


def _port_clashes(path: str, ports: Any) -> Iterator[Broken]:
    for index, item in enumerate(ports if isinstance(ports, list) else ()):
        if isinstance(item, Mapping) and item.get("containerPort") == POD.ports.http:
            message = "is the port that probes and Services know as http"
            yield Broken(f"{path}.ports[{index}]", item, message, "remove it")


@rule(
    id="template-malformed",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="Lists of a template that merge by name are lists of objects with that name.",
    why="What has no name cannot be merged, and the API server would refuse the pods.",
    source="Kubernetes: strategic merge patch, patchMergeKey",
)
def template_malformed(wiring: Wiring) -> Iterator[Broken]:
    """A list that is none, an item without its name, a directive of kubectl patches."""
    for found in overlays(wiring):
        yield from _malformed(found.spec, f"{found.path}.spec")


def _malformed(value: Any, path: str) -> Iterator[Broken]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _malformed(item, f"{path}[{index}]")
    if not isinstance(value, Mapping):
        return
    for key, item in value.items():
        here = f"{path}.{key}"
        if key.startswith("$"):
            message = "is a directive of kubectl's patches, which templates do not have"
            yield Broken(here, item, message, "remove it; null removes a field")
        elif key in overlay.KEYS:
            yield from _malformed_list(item, here, overlay.KEYS[key][0])
        yield from _malformed(item, here)


def _malformed_list(value: Any, path: str, key: str) -> Iterator[Broken]:
    if value is None and not path.endswith(_NEVER_REMOVED):
        return
    if not isinstance(value, list):
        yield Broken(path, value, f"must be a list of objects, each with {key}", "write it as a list")
        return
    for index, item in enumerate(value):
        if not isinstance(item, Mapping) or item.get(key) is None:
            message = f"is merged by its {key}, and it has none"
            yield Broken(f"{path}[{index}]", item, message, f"write an object with {key}")


RULES = (template_clash, template_malformed)
