"""What the chart repeats is what it is made from."""

import pytest
import yaml

from hack.chart import CHART, CRDS, comments, described, documented, made


@pytest.mark.parametrize("path", made(), ids=lambda path: path.name)
def test_is_up_to_date(path: object) -> None:
    files = made()
    assert path.read_text() == files[path], "run `make chart`"  # type: ignore[attr-defined,index]


def test_ships_every_crd_and_no_other() -> None:
    shipped = {file.name for file in (CHART / "files" / "crds").iterdir()}
    assert shipped == {file.name for file in CRDS.glob("*.yaml")}


def test_versions_are_the_projects() -> None:
    from epd_operator import __version__

    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__


def test_every_value_has_words() -> None:
    text = (CHART / "values.yaml").read_text()
    words = documented(text)

    def leaves(node: object, path: str) -> list[str]:
        if path in words or not isinstance(node, dict):
            return [path]
        return [leaf for key, value in node.items() for leaf in leaves(value, f"{path}.{key}".lstrip("."))]

    assert leaves(yaml.safe_load(text), "") == list(words)


def test_comments_are_read_with_their_paths() -> None:
    text = "a:\n  # One\n  # two.\n  b: 1\n  c:\n    # Three.\n    d: {}\n# Four.\ne:\n  f: 1\ng: 2\n"
    found = dict(comments(text))
    assert found == {"a": "", "a.b": "One two.", "a.c": "", "a.c.d": "Three.", "e": "Four.", "g": ""}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [({}, "no comment on a"), ({"a": "A.", "b": "B."}, "b missing, which values.yaml has")],
)
def test_schema_and_values_must_agree(words: dict[str, str], complaint: str) -> None:
    with pytest.raises(KeyError, match=complaint):
        described({"properties": {"a": {"type": "string"}}}, words)
