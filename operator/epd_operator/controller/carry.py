"""What of a kept rendering stays when a spec changes. Pure.

Both specs, the one that was accepted and the new one, are rendered by the running operator. What the change of the
spec leaves as it is stays as it was kept, whoever rendered it; what it changes is taken anew. So neither a new operator
nor a change elsewhere restarts a pod.
"""

from collections.abc import Sequence

from epd_operator.api import names
from epd_operator.api.role import Role
from epd_operator.cluster.resources import Object

_ROLES = frozenset(str(role) for role in Role)
_Identity = tuple[str, str, str]


def carried(kept: Sequence[Object], before: Sequence[Object], after: Sequence[Object]) -> tuple[Object, ...]:
    """The objects that `after` becomes in the light of what is kept.

    `before`: what the running operator makes of the kept spec. All three without replicas.
    """
    kept_by, before_by = _by_identity(kept), _by_identity(before)
    same = {
        identity
        for identity, body in _by_identity(after).items()
        if identity in kept_by and before_by.get(identity) == body
    }
    anew = {part for part in _ROLES if any(_part(i) == part and i not in same for i in _by_identity(after))}
    whole = bool(anew) and (_revision(kept) != _revision(before) or _revision(before) != _revision(after))
    return tuple(
        kept_by[identity] if identity in same and _part(identity) not in (_ROLES if whole else anew) else body
        for identity, body in _by_identity(after).items()
    )


def _by_identity(objects: Sequence[Object]) -> dict[_Identity, Object]:
    return {_identity(body): body for body in objects}


def _identity(body: Object) -> _Identity:
    """Kind, component, and name without revision: the same thing in renderings of different operators."""
    labels = body["metadata"].get("labels") or {}
    revision = labels.get(names.LABEL_REVISION)
    name = str(body["metadata"]["name"])
    return body["kind"], labels.get(names.LABEL_COMPONENT, ""), name.removesuffix(f"-{revision}") if revision else name


def _part(identity: _Identity) -> str:
    return identity[1]


def _revision(objects: Sequence[Object]) -> str:
    """The revision of a rendering's roles."""
    labels = (body["metadata"].get("labels") or {} for body in objects)
    return next((label[names.LABEL_REVISION] for label in labels if names.LABEL_REVISION in label), "")
