"""What is written is what a YAML reader gets back, whatever the text."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from epd_operator.cli.yaml_output import dump_all

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(exclude_categories=["Cs", "Cc"]))
    | st.text("ab \n:#'\"|>-"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.text("abc.-", min_size=1), VALUES, max_size=4), max_size=3))
def test_round_trip(documents: list[dict[str, object]]) -> None:
    assert list(yaml.safe_load_all(dump_all(documents))) == documents


def test_marks_that_reorder_text_are_escaped() -> None:
    text = dump_all([{"a": "x\u202ey\x9b", "b": "z\u00e9"}])
    assert text.isascii()
    assert yaml.safe_load(text) == {"a": "x\u202ey\x9b", "b": "z\u00e9"}
    assert "z\u00e9" in dump_all([{"b": "z\u00e9"}])


def test_order_and_long_lines_are_kept() -> None:
    text = dump_all([{"b": 1, "a": "x " * 200}])
    assert text.index("b:") < text.index("a:")
    assert len(text.splitlines()) == 3
