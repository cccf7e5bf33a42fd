"""Conditions: what they say now, and when they last changed. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epd_operator.api.conditions import ConditionType, Reason

MAX_MESSAGE = 32_768
_WHILE_TRUE = frozenset({ConditionType.RECONCILING, ConditionType.STALLED})


@dataclass(frozen=True, slots=True)
class Said:
    """One condition, without its times."""

    type: ConditionType
    status: str
    """True, False or Unknown."""
    reason: Reason
    message: str


def conditions(said: Iterable[Said], before: Sequence[Mapping[str, Any]], generation: int, now: str) -> list[Any]:
    """The list for the status. kstatus' conditions are there only while they are true; times move with the status."""
    known = {condition["type"]: condition for condition in before}
    return [
        {
            "type": str(each.type),
            "status": each.status,
            "reason": str(each.reason),
            "message": each.message[:MAX_MESSAGE],
            "lastTransitionTime": _since(known.get(each.type), each.status, now),
            "observedGeneration": generation,
        }
        for each in said
        if each.status == "True" or each.type not in _WHILE_TRUE
    ]


def _since(before: Mapping[str, Any] | None, status: str, now: str) -> str:
    return str(before["lastTransitionTime"]) if before is not None and before["status"] == status else now


def get(status: Mapping[str, Any], kind: ConditionType) -> Mapping[str, Any]:
    """One condition of a status; empty where it is not there."""
    return next((c for c in status.get("conditions") or [] if c["type"] == kind), {})


def merge_patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON merge patch (RFC 7386) from one value to the other; empty where they are the same."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            if inner := merge_patch(old, value):
                patch[name] = inner
        elif old != value:
            patch[name] = value
    return patch
