import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from jinja2 import UndefinedError

from epd_operator.api.pod import Resources
from epd_operator.api.quantity import Quantity
from epd_operator.api.role import Role
from epd_operator.manifests.templating import fill, to_yaml
from tests.unit.manifests.specs import HOSTILE, json_values


@given(json_values)
def test_every_value_is_read_back_the_same_by_libyaml(value: Any) -> None:
    assert yaml.load(to_yaml(value), Loader=yaml.CSafeLoader) == value


@given(json_values)
def test_every_value_is_read_back_the_same_by_the_other_reader(value: Any) -> None:
    assert yaml.load(f"a: {to_yaml(value)}\nb: 1\n", Loader=yaml.SafeLoader) == {"a": value, "b": 1}


@given(json_values)
def test_a_value_is_one_line_of_ascii(value: Any) -> None:
    text = to_yaml(value)
    assert text.isascii()
    assert text.isprintable()


@pytest.mark.parametrize("text", [*HOSTILE, "k" * 5000])
def test_hostile_texts_stay_in_their_place_as_key_and_value(text: str) -> None:
    value = {text: text, "list": [text, {text: [text]}]}
    assert yaml.load(f"- {to_yaml(value)}\n- 1\n", Loader=yaml.CSafeLoader) == [value, 1]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Role.DECODE, '"decode"'),
        (Quantity("1Gi"), '"1Gi"'),
        (True, "true"),
        (1e16, "1.0e+16"),
        (("a", 1), '["a", 1]'),
        (Resources(limits={"memory": Quantity("1Gi")}), '{"limits": {"memory": "1Gi"}}'),
        ("\x7f\u2028😀", '"\\u007f\\u2028\\U0001f600"'),
    ],
)
def test_values_of_the_plan_are_plain_json(value: Any, text: str) -> None:
    assert to_yaml(value) == text


@pytest.mark.parametrize("value", [object(), b"a", {1: 2}, {"a": {None: 1}}])
def test_what_json_cannot_say_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"has no place in a manifest|is no key"):
        to_yaml(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_numbers_and_texts_that_json_cannot_say_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"is no JSON number|is half a character"):
        to_yaml([value])


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
