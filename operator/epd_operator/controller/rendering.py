"""An accepted spec and what was rendered from it, kept: an operator that renders otherwise restarts nothing.

A rendering has no replicas: scaling reuses it. It lives in a ControllerRevision, whose data never changes.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from epd_operator.api import names
from epd_operator.cluster.informer import version_of
from epd_operator.cluster.resources import CONTROLLER_REVISIONS, Object
from epd_operator.controller.child import Owner

SCALED = frozenset({"Deployment", "EPDRoleScale"})
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Piece:
    """One rendered object, by name and digest."""

    kind: str
    name: str
    component: str
    revision: str | None
    """None where the object belongs to all revisions."""
    digest: str

    @property
    def key(self) -> tuple[str, str]:
        """Kind and name."""
        return self.kind, self.name


@dataclass(frozen=True)
class Content:
    """What is kept of an accepted spec."""

    spec: Mapping[str, Any]
    """As accepted, without what scales."""
    render: str
    """Value of the annotation that asks for a rendering anew."""
    facts: Mapping[str, Any]
    """What the status says of the plan: topology, engineVersion, defaults, preprocessingDevice, url, revision; and
    for rollouts, of each role: drainSeconds, progressDeadlineSeconds."""
    objects: tuple[Object, ...]
    """In apply order, without owner references and replicas."""

    @property
    def revision(self) -> str:
        """Revision of the roles."""
        return str(self.facts["revision"])

    def pieces(self) -> tuple[Piece, ...]:
        """The objects' names and digests."""
        return tuple(_piece(body) for body in self.objects)

    def as_json(self) -> dict[str, Any]:
        """The data of the ControllerRevision."""
        return {
            "format": FORMAT,
            "spec": self.spec,
            "render": self.render,
            "facts": self.facts,
            "objects": list(self.objects),
        }


@dataclass
class Rendering:
    """One kept rendering: its content packed, since it is rarely looked at."""

    namespace: str
    name: str
    uid: str
    version: int
    number: int
    """The highest is the one that the latest accepted spec asks for."""
    instance: str
    owner: Owner | None
    revision: str
    spec_digest: str
    packed: bytes

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The objects' names and digests."""
        return self.content().pieces()

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """What is known of the plan."""
        return self.content().facts

    def content(self) -> Content:
        """Unpack it."""
        data = json.loads(zlib.decompress(self.packed))
        return Content(data["spec"], data["render"], data["facts"], tuple(data["objects"]))


def keep_rendering(body: Object) -> Rendering:
    """The record of a ControllerRevision."""
    metadata, data = body["metadata"], body.get("data") or {}
    labels = metadata.get("labels") or {}
    owners = metadata.get("ownerReferences") or []
    return Rendering(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        version=version_of(body),
        number=int(body.get("revision") or 0),
        instance=labels.get(names.LABEL_INSTANCE, ""),
        owner=next((Owner(o["kind"], o["name"], o["uid"]) for o in owners if o.get("controller")), None),
        revision=labels.get(names.LABEL_REVISION, ""),
        spec_digest=spec_digest(data.get("spec") or {}, data.get("render") or ""),
        packed=zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 6),
    )


def controller_revision(content: Content, instance: Mapping[str, Any], owner: Object, number: int) -> Object:
    """The ControllerRevision of a rendering; named after content and number, so that making it twice makes one."""
    metadata = instance["metadata"]
    data = content.as_json()
    return {
        "apiVersion": CONTROLLER_REVISIONS.api_version,
        "kind": CONTROLLER_REVISIONS.kind,
        "metadata": {
            "name": f"{metadata['name']}-{digest_of([data, number])}",
            "namespace": metadata["namespace"],
            "labels": {
                names.LABEL_NAME: "epd",
                names.LABEL_INSTANCE: metadata["name"],
                names.LABEL_MANAGED_BY: "epd-operator",
                names.LABEL_REVISION: content.revision,
            },
            "ownerReferences": [owner],
        },
        "data": data,
        "revision": number,
    }


def without_replicas(objects: Iterable[Object]) -> tuple[Object, ...]:
    """Rendered objects without the number of instances."""
    return tuple(_without_replicas(body) for body in objects)


def _without_replicas(body: Object) -> Object:
    if body["kind"] not in SCALED:
        return body
    spec = {key: value for key, value in body["spec"].items() if key != "replicas"}
    return {**body, "spec": spec}


def unscaled(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A spec without what scales and what suspends: changes of these make no new rendering."""
    left = {key: value for key, value in spec.items() if key not in ("suspend", "preflight")}
    for part in ("encode", "prefill", "decode", "proxy"):
        if isinstance(left.get(part), Mapping):
            left[part] = {key: value for key, value in left[part].items() if key != "replicas"}
    return left


def spec_digest(spec: Mapping[str, Any], render: str) -> str:
    """Of a spec without what scales."""
    return digest_of([spec, render])


def digest_of(value: Any) -> str:
    """Ten hexadecimal digits that tell a JSON value from others of the same deployment."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:10]


def _piece(body: Object) -> Piece:
    labels = body["metadata"].get("labels") or {}
    return Piece(
        body["kind"],
        body["metadata"]["name"],
        labels.get(names.LABEL_COMPONENT, ""),
        labels.get(names.LABEL_REVISION),
        digest_of(body),
    )
