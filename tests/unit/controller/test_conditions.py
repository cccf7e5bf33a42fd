"""Conditions and patches of the status."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from epd_operator.api.conditions import ConditionType, Reason
from epd_operator.controller.conditions import Said, conditions, merge_patch

json_values = st.recursive(
    st.integers() | st.text(max_size=3) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(st.text(max_size=2), json_values, max_size=4)


def patched(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386."""
    result = dict(base)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = patched(result[key] if isinstance(result.get(key), dict) else {}, value)
        else:
            result[key] = value
    return result


@given(objects, objects)
def test_a_merge_patch_leads_from_one_to_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert patched(before, merge_patch(before, after)) == after


@given(objects)
def test_the_same_needs_no_patch(value: dict[str, Any]) -> None:
    assert merge_patch(value, value) == {}


def test_times_move_with_the_status_only() -> None:
    kind = ConditionType.READY
    first = conditions([Said(kind, "False", Reason.STARTING, "a")], [], 1, "t1")
    second = conditions([Said(kind, "False", Reason.UNSCHEDULABLE, "b")], first, 2, "t2")
    third = conditions([Said(kind, "True", Reason.CONVERGED, "c")], second, 2, "t3")
    assert [c[0]["lastTransitionTime"] for c in (first, second, third)] == ["t1", "t1", "t3"]
    assert [c[0]["observedGeneration"] for c in (first, second, third)] == [1, 2, 2]


def test_kstatus_conditions_are_there_only_while_true() -> None:
    said = [
        Said(ConditionType.STALLED, "False", Reason.VALID, ""),
        Said(ConditionType.RECONCILING, "True", Reason.STARTING, ""),
    ]
    assert [condition["type"] for condition in conditions(said, [], 1, "t")] == ["Reconciling"]
