"""The Secrets and ConfigMaps that a pod needs. Pure."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from hack.cluster.kubectl import Object

SECRET, CONFIG_MAP = "Secret", "ConfigMap"
COLLECTIONS = {SECRET: "secrets", CONFIG_MAP: "configmaps"}


@dataclass(frozen=True)
class Reference:
    """One object, or one key of it, that must be there."""

    kind: str
    name: str
    key: str = ""
    """Empty: any content will do."""
    container: str = ""
    """Who needs it in its environment; empty for a volume."""
    volume: str = ""

    def complaint(self, namespace: str, keys: Collection[str] | None) -> str:
        """What a kubelet says, given the object's keys (None: no such object); empty if all is well."""
        if keys is None:
            return f'{self.kind.lower()} "{self.name}" not found'
        if not self.key or self.key in keys:
            return ""
        if self.volume:
            return f"references non-existent {'secret' if self.kind == SECRET else 'config'} key: {self.key}"
        return f"couldn't find key {self.key} in {self.kind} {namespace}/{self.name}"


Keys = Callable[[str, str], Collection[str] | None]
"""From kind and name to the keys of an object; None where there is no such object."""


def references(pod: Object) -> Iterator[Reference]:
    """What the pod needs and does not call optional: volumes first, as a kubelet sees to them first."""
    spec = pod["spec"]
    for volume in spec.get("volumes") or []:
        yield from _of_volume(volume)
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        yield from _of_environment(container)


def _of_volume(volume: Object) -> Iterator[Reference]:
    sources = [volume, *((volume.get("projected") or {}).get("sources") or [])]
    for source in sources:
        for kind, field, name_field in (
            (SECRET, "secret", "secretName" if source is volume else "name"),
            (CONFIG_MAP, "configMap", "name"),
        ):
            reference = source.get(field)
            if reference and not reference.get("optional"):
                for item in reference.get("items") or [{"key": ""}]:
                    yield Reference(kind, reference[name_field], item["key"], volume=volume["name"])


def _of_environment(container: Object) -> Iterator[Reference]:
    for source in container.get("envFrom") or []:
        for kind, field in ((SECRET, "secretRef"), (CONFIG_MAP, "configMapRef")):
            if (reference := source.get(field)) and not reference.get("optional"):
                yield Reference(kind, reference["name"], container=container["name"])
    for variable in container.get("env") or []:
        source = variable.get("valueFrom") or {}
        for kind, field in ((SECRET, "secretKeyRef"), (CONFIG_MAP, "configMapKeyRef")):
            if (reference := source.get(field)) and not reference.get("optional"):
                yield Reference(kind, reference["name"], reference["key"], container=container["name"])
