"""Scalars are those of kubectl. The table was read from `kubectl create --dry-run=client -o json` (1.37)."""

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from epd_operator.cli import scalars
from epd_operator.cli.reader import _contents
from epd_operator.cli.yaml_output import dump_all

KUBECTL = [
    ("1:30", "1:30"),
    ("190:20:30", "190:20:30"),
    ("1:30.5", "1:30.5"),
    ("1e3", 1000),
    ("1E3", 1000),
    ("+12e03", 12000),
    ("1.5e3", 1500),
    ("12345e67", 12345e67),
    ("12e4567", "12e4567"),
    ("1e400", "1e400"),
    ("08", 8),
    ("017", 15),
    ("0o17", 15),
    ("0O17", 15),
    ("0x1F", 31),
    ("-0x1f", -31),
    ("0b11", 3),
    ("0b2", "0b2"),
    ("1_000", 1000),
    ("1_0.5", 10.5),
    ("0xdead_beef", 0xDEADBEEF),
    ("_1", "_1"),
    ("1.", 1),
    ("2.0", 2),
    (".5", 0.5),
    ("-.5", -0.5),
    ("._5", "._5"),
    ("y", True),
    ("N", False),
    ("yes", True),
    ("oN", "oN"),
    ("tRUE", "tRUE"),
    ("=", "="),
    ("<<", "<<"),
    ("~", None),
    ("2001-01-01", "2001-01-01"),
    ("0x" + "f" * 300, "0x" + "f" * 300),
    ("9" * 5000, "9" * 5000),
]


def read(text: str) -> object:
    (document,) = _contents("file", f"a: [{text}]\n")
    return document["a"][0]


@pytest.mark.parametrize(("text", "value"), KUBECTL, ids=lambda case: str(case)[:20])
def test_a_plain_scalar_is_what_kubectl_makes_of_it(text: str, value: object) -> None:
    found = read(text)
    assert (type(found), found) == (type(value), value)


def test_what_is_not_finite_stays_so() -> None:
    assert read(".inf") == math.inf
    assert read("-.Inf") == -math.inf


@pytest.mark.parametrize("text", [text for text, value in KUBECTL if isinstance(value, bool | int | float)])
def test_text_that_kubectl_would_take_for_something_else_is_quoted(text: str) -> None:
    written = dump_all([{"a": text}])
    (document,) = _contents("file", written)
    assert document == {"a": text}
    assert yaml.safe_load(written) == {"a": text}


@given(
    st.text("0123456789abcdef", min_size=8, max_size=8) | st.from_regex(r"[-+.0-9a-fxoyntes_:]{1,10}", fullmatch=True)
)
def test_text_stays_text(text: str) -> None:
    (document,) = _contents("file", dump_all([{text: text}]))
    assert document == {text: text}


@given(st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.none() | st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_stay_numbers(value: object) -> None:
    (document,) = _contents("file", dump_all([{"a": value}]))
    assert document == {"a": value}


@pytest.mark.parametrize(
    ("tag", "text", "said"),
    [("bool", "maybe", "neither true nor false"), ("int", '""', "no whole number"), ("float", "x", "no number")],
)
def test_an_explicit_tag_that_lies_is_told_with_its_place(tag: str, text: str, said: str) -> None:
    with pytest.raises(Exception, match=rf"file:1:5: is not valid YAML: .* is {said}"):
        read(f"!!{tag} {text}")


def test_dumper_and_loader_of_others_are_left_alone() -> None:
    assert yaml.safe_load("a: 1:30") == {"a": 90}
    assert scalars.BOOL in {tag for tag, _ in yaml.SafeLoader.yaml_implicit_resolvers["y"]}
