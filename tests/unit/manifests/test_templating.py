import json
from typing import Any

import pytest
from hypothesis import given
from jinja2 import UndefinedError

from epd_operator.api.pod import Resources
from epd_operator.api.quantity import Quantity
from epd_operator.api.role import Role
from epd_operator.manifests.templating import fill, plain
from tests.unit.manifests.specs import HOSTILE, json_values


@given(json_values)
def test_json_stays_what_it_is(value: Any) -> None:
    assert plain(value) == value


@given(json_values)
def test_every_value_keeps_its_place_in_a_template(value: Any) -> None:
    found = fill("proxy-serviceaccount.yaml.j2", plan={"namespace": value}, proxy={"name": [value], "labels": {}})
    assert found["metadata"] == {"namespace": value, "name": [value], "labels": {}}


@pytest.mark.parametrize("text", [*HOSTILE, "k" * 5000, "\ue0000"])
def test_hostile_texts_stay_in_their_place_as_key_and_value(text: str) -> None:
    value = {text: text, "list": [text, {text: [text]}]}
    found = fill("proxy-serviceaccount.yaml.j2", plan={"namespace": "n"}, proxy={"name": text, "labels": value})
    assert found["metadata"] == {"namespace": "n", "name": text, "labels": value}


def test_what_is_filled_is_nobody_elses() -> None:
    labels = {"a": ["b"]}
    one, two = (
        fill("proxy-serviceaccount.yaml.j2", plan={"namespace": "n"}, proxy={"name": "a", "labels": labels})
        for _ in "ab"
    )
    one["metadata"]["labels"]["a"].append("c")
    one["metadata"]["name"] = "other"
    assert (labels, two["metadata"]) == ({"a": ["b"]}, {"namespace": "n", "name": "a", "labels": {"a": ["b"]}})


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Role.DECODE, "decode"),
        (Quantity("1Gi"), "1Gi"),
        (True, True),
        (1e16, 1e16),
        (("a", 1), ["a", 1]),
        (Resources(limits={"memory": Quantity("1Gi")}), {"limits": {"memory": "1Gi"}}),
        ("\x7f\u2028😀", "\x7f\u2028😀"),
    ],
)
def test_values_of_the_plan_are_plain_json(value: Any, said: Any) -> None:
    found = plain(value)
    assert (found, type(found)) == (said, type(said))


@pytest.mark.parametrize("value", [object(), b"a", {1: 2}, {"a": {None: 1}}])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"has no place in a manifest|is no key"):
        plain(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_numbers_and_texts_that_json_cannot_say_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"is no JSON number|is half a character"):
        plain([value])


def test_a_name_that_the_context_lacks_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'proxy' is undefined"):
        fill("proxy-serviceaccount.yaml.j2", plan={"namespace": "n"})


def test_a_field_that_a_value_lacks_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="no attribute 'name'"):
        fill("proxy-serviceaccount.yaml.j2", plan={"namespace": "n"}, proxy={"labels": {}})


def test_texts_do_not_become_templates() -> None:
    proxy = {"name": "{{ plan.namespace }}\n  evil: true", "labels": {"a": "{% raw %}", "b}}": '"'}}
    found = fill("proxy-serviceaccount.yaml.j2", plan={"namespace": "n"}, proxy=proxy)
    assert found["metadata"] == {**proxy, "namespace": "n"}
    assert json.loads(json.dumps(found)) == found
