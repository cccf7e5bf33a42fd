"""How findings print."""

import json

import pytest

from epd_operator.api.finding import Finding, Severity, has_errors


def finding(value: object, severity: Severity = Severity.ERROR) -> Finding:
    return Finding("a-rule", severity, "spec.a", value, "is wrong", "correct it", "0.33.0")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "(not set)"),
        ("latest", "latest"),
        ("", '""'),
        (" a", '" a"'),
        ("4", '"4"'),
        (4, "4"),
        ("1.0", '"1.0"'),
        ("0.33.0", "0.33.0"),
        ("true", '"true"'),
        (True, "true"),
        ("nan", '"nan"'),
        ({"a": ["ü"]}, '{"a": ["ü"]}'),
        ("a\nb\x1b[31m", "a\\nb\\x1b[31m"),
        ("x" * 121, "x" * 117 + "..."),
    ],
)
def test_values(value: object, shown: str) -> None:
    assert finding(value).shown_value == shown


def test_one_line() -> None:
    assert str(finding(2)) == "spec.a: 2: is wrong; correct it [a-rule]"


def test_json() -> None:
    assert json.loads(json.dumps(finding(2).as_json())) == {
        "rule": "a-rule",
        "severity": "error",
        "path": "spec.a",
        "value": 2,
        "message": "is wrong",
        "remedy": "correct it",
        "release": "0.33.0",
    }


def test_only_errors_keep_an_object_from_being_accepted() -> None:
    assert not has_errors([])
    assert not has_errors([finding(1, Severity.WARNING)])
    assert has_errors([finding(1, Severity.WARNING), finding(1)])
