"""The user's overlay on a pod, merged by name as Kubernetes' strategic merge does it.

https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/: objects are merged field by
field, lists of named things by their name, null removes a field, everything else replaces. What the operator must keep
(the command line, selector labels, variables of the wiring: `api/overlay.py`) stays whatever the overlay says; rules
report such an overlay as an error, so that nothing is dropped in silence.
"""

import copy
from collections.abc import Collection, Mapping
from typing import Any

from epd_operator.api.overlay import CONTAINER_FIELDS, KEYS, protected_fields, reserved
from epd_operator.api.pod import PodTemplate
from epd_operator.engine.site import POD

Object = dict[str, Any]

APPENDED = frozenset({"tolerations", "envFrom", "readinessGates", "supplementalGroups", "add", "drop"})
"""Lists that grow: what is there stays, what is new comes after it. `add` and `drop` are those of capabilities."""
KEY_DEFAULTS = {"protocol": "TCP"}
ONE_SOURCE = frozenset({"volumes"})
"""Items with one source of several: fields that the overlay does not name go (Kubernetes' retainKeys)."""
REPLACED = frozenset({"env"})
"""Items that replace their namesake: a value must not meet a source."""
HANDLERS = frozenset({"exec", "grpc", "httpGet", "sleep", "tcpSocket"})
"""Ways to probe or to hook, of which there may be one."""


def overlaid(template: Object, overlay: PodTemplate, wired: Collection[str] = ()) -> Object:
    """A pod template with its overlay, as new objects.

    The first container is the operator's own: the overlay adds to it but may not change its command, args, image and
    resources, nor the variables named in `wired`.
    """
    metadata = overlay.metadata
    kept: Object = {}
    for kind, added in (
        ("labels", metadata and metadata.labels),
        ("annotations", metadata and metadata.annotations),
    ):
        free = {key: value for key, value in (added or {}).items() if not reserved(key)}
        kept[kind] = {**template["metadata"].get(kind, {}), **free}
    own = template["spec"]["containers"][0]["name"]
    return {"metadata": kept, "spec": merged(template["spec"], _free(overlay.spec or {}, own, wired))}


def _free(spec: Mapping[str, Any], own: str, wired: Collection[str]) -> Object:
    """The part of an overlay that it may say."""
    free = {key: value for key, value in spec.items() if key not in protected_fields(own)}
    containers = free.pop("containers", None)
    if isinstance(containers, list):
        free["containers"] = [
            _free_container(item, wired) if isinstance(item, Mapping) and item.get("name") == own else item
            for item in containers
        ]
    return free


def _free_container(container: Mapping[str, Any], wired: Collection[str]) -> Object:
    free = {key: value for key, value in container.items() if key not in CONTAINER_FIELDS}
    for field, key, names in (("env", "name", wired), ("ports", "containerPort", (POD.ports.http,))):
        items = free.pop(field, None)
        if isinstance(items, list):
            free[field] = [item for item in items if not (isinstance(item, Mapping) and item.get(key) in names)]
    return free


def merged(base: Any, patch: Any, field: str = "") -> Any:
    """`patch` merged over `base`, the value of a pod's `field`. Neither is changed, nor part of the result."""
    if isinstance(base, Mapping) and isinstance(patch, Mapping):
        return _merged_objects(base, patch)
    if isinstance(base, list) and isinstance(patch, list):
        if field in KEYS:
            return _merged_lists(base, patch, field)
        if field in APPENDED:
            return copy.deepcopy(base) + [_added(item) for item in patch if item not in base]
    return _added(patch)


def _merged_objects(base: Mapping[str, Any], patch: Mapping[str, Any]) -> Object:
    handlers = {key for key in HANDLERS if patch.get(key) is not None}
    result = {key: value for key, value in base.items() if not (handlers and key in HANDLERS - handlers)}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result[key], value, key) if key in result else _added(value)
    return copy.deepcopy(result)


def _merged_lists(base: list[Any], patch: list[Any], field: str) -> list[Any]:
    result = copy.deepcopy(base)
    places = {name: place for place, item in enumerate(base) if (name := _name(item, field)) is not None}
    for item in patch:
        name = _name(item, field)
        place = places.get(name) if name is not None else None
        if place is None:
            result.append(_added(item))
        elif field in REPLACED:
            result[place] = _added(item)
        elif field in ONE_SOURCE:
            result[place] = merged({key: value for key, value in result[place].items() if key in item}, item)
        else:
            result[place] = merged(result[place], item)
    return result


def _name(item: Any, field: str) -> tuple[Any, ...] | None:
    """What an item of a list is known by; None if it lacks that, and so is nobody's namesake."""
    if not isinstance(item, Mapping):
        return None
    name = tuple(item.get(key, KEY_DEFAULTS.get(key)) for key in KEYS[field])
    return name if all(isinstance(part, str | int) for part in name) else None


def _added(value: Any) -> Any:
    """A copy, without the nulls of objects, which would remove what is not there."""
    if isinstance(value, Mapping):
        return {key: _added(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_added(item) for item in value]
    return copy.deepcopy(value)
