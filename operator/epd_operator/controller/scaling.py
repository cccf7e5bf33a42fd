"""How many instances each role, and how many proxies, there shall be. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epd_operator.api.role import Role
from epd_operator.cluster.informer import version_of
from epd_operator.cluster.resources import Object
from epd_operator.plan.proxy import DEFAULT_REPLICAS


@dataclass(frozen=True, slots=True)
class Scale:
    """What is kept of an EPDRoleScale."""

    namespace: str
    name: str
    uid: str
    version: int
    generation: int
    deployment: str
    role: str
    replicas: int
    status: Mapping[str, Any]
    deleting: bool
    owner_uid: str
    """Of its controlling owner; empty where an autoscaler's user made it."""


def keep_scale(body: Mapping[str, Any]) -> Scale:
    """The record of an EPDRoleScale."""
    metadata, spec = body["metadata"], body["spec"]
    return Scale(
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        version=version_of(dict(body)),
        generation=int(metadata.get("generation") or 0),
        deployment=spec["deployment"],
        role=spec["role"],
        replicas=int(spec["replicas"]),
        status=body.get("status") or {},
        deleting="deletionTimestamp" in metadata,
        owner_uid=next((o["uid"] for o in metadata.get("ownerReferences") or [] if o.get("controller")), ""),
    )


def wanted(spec: Mapping[str, Any], scales: Mapping[str, Scale], live: Mapping[str, int]) -> dict[str, int]:
    """Instances wanted of each role of the spec, and of `proxy`.

    `scales`: the EPDRoleScales by role. `live`: instances that each role has now: what counts from the moment an
    autoscaler is to decide until it can, so that switching it on drains nothing.
    """
    proxy = (spec.get("proxy") or {}).get("replicas")
    counts = {"proxy": DEFAULT_REPLICAS if proxy is None else int(proxy)}
    for role in Role:
        part = spec.get(role)
        if not isinstance(part, Mapping):
            continue
        if part.get("scaling"):
            scale = scales.get(role)
            counts[role] = scale.replicas if scale else live.get(role, 1)
        else:
            replicas = part.get("replicas")
            counts[role] = 1 if replicas is None else int(replicas)
    return dict.fromkeys(counts, 0) if spec.get("suspend") else counts


def scale_status(scale: Scale, ready: int, selector: Mapping[str, str]) -> Object | None:
    """The status of an EPDRoleScale; None if it is that already."""
    status = {
        "observedGeneration": scale.generation,
        "replicas": ready,
        "selector": ",".join(f"{key}={value}" for key, value in sorted(selector.items())),
    }
    return None if dict(scale.status) == status else status
