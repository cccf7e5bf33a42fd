"""The webhook's answer: the words of `epd validate`, and mercy for what was there before."""

import copy
from typing import Any

from epd_operator.controller.admission import review
from epd_operator.plan.settings import DEFAULT_SETTINGS
from tests.unit.controller.seen import instance

WRONG: dict[str, Any] = {"encode": {"parallelism": {"tensor": 2}, "preprocessing": {"tensorIPC": "torch_shm"}}}


def answer(body: Any, old: Any = None) -> tuple[list[str], list[str]]:
    return review(body, old, DEFAULT_SETTINGS)


def test_a_right_object_is_allowed() -> None:
    assert answer(instance())[0] == []


def test_every_error_is_told_with_its_rule() -> None:
    body = instance(name="vllm-x", **WRONG)
    errors, _ = answer(body)
    assert [error.rsplit("[", 1)[1] for error in errors] == ["name-begins-with-vllm]", "torch-shm-single-rank]"]


def test_an_update_may_leave_what_is_wrong_but_add_nothing() -> None:
    old = instance(**WRONG)
    changed = copy.deepcopy(old)
    changed["spec"]["decode"] = {"replicas": 7}
    errors, warnings = answer(changed, old)
    assert errors == []
    assert warnings[0].startswith("(as before) spec.encode.parallelism.tensor: 2:")
    worse = copy.deepcopy(old)
    worse["spec"]["encode"]["parallelism"]["tensor"] = 4
    assert len(answer(worse, old)[0]) == 1


def test_metadata_may_always_change() -> None:
    old = instance(engine={})
    new = copy.deepcopy(old)
    new["metadata"]["labels"] = {"a": "b"}
    assert answer(new, old) == ([], [])


def test_an_object_of_no_shape_is_refused_in_words() -> None:
    errors, _ = answer(instance(encode={"replica": 1}))
    assert "spec.encode.replica: 1: is not a field of this API" in errors[0]
