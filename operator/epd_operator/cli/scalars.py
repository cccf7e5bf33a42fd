"""Plain scalars of YAML as kubectl reads them (sigs.k8s.io/yaml, go-yaml 2), which is not how PyYAML does.

`y` is true, `1e3`, `08` and `-.5` are numbers, `1:30` is text. What is written must be quoted by the same rules: a
revision such as 12345e67 in a label would else be refused as a number. Compared with kubectl 1.37.
"""

import math
import re
from typing import Any, Protocol

import yaml
from yaml.constructor import ConstructorError

_MAX_DIGITS = 400
"""Longer ones are beyond a double, so text for kubectl; Python would refuse to print them."""
_TRUE = ("y", "yes", "true", "on")
_FALSE = ("n", "no", "false", "off")
BOOL, INT, FLOAT, MERGE = (f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "merge"))
_VALUE = "tag:yaml.org,2002:value"
_RESOLVERS = (
    (BOOL, rf"(?:{'|'.join(form for word in (*_TRUE, *_FALSE) for form in {word, word.title(), word.upper()})})"),
    (
        INT,
        r"[-+]?(?:0[bB]_*[01][01_]*|0[xX]_*[0-9a-fA-F][0-9a-fA-F_]*|0[oO]_*[0-7][0-7_]*|0[0-7_]*|[1-9][0-9_]*)",
    ),
    (
        FLOAT,
        r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)(?:[eE][-+]?[0-9][0-9_]*)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
    ),
)
_FIRST = {BOOL: "yYnNtTfFoO", INT: "-+0123456789", FLOAT: "-+.0123456789"}


class _Resolver(Protocol):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]]

    @classmethod
    def add_implicit_resolver(cls, tag: str, regexp: re.Pattern[str], first: list[str]) -> None: ...


def use_kubectl_scalars(kind: type[_Resolver], *, alone: bool) -> None:
    """Make a loader or dumper class tell text from other scalars as kubectl does; unless `alone`, as YAML 1.1 too."""
    replaced = {tag for tag, _ in _RESOLVERS} | {_VALUE} if alone else set()
    kind.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in replaced]
        for first, resolvers in kind.yaml_implicit_resolvers.items()
    }
    for tag, pattern in _RESOLVERS:
        kind.add_implicit_resolver(tag, re.compile(f"(?:{pattern})$", re.ASCII), list(_FIRST[tag]))


def truth(loader: Any, node: yaml.ScalarNode) -> bool:
    """Construct a truth value. Raises ConstructorError for what an explicit tag calls one and is none."""
    word = str(loader.construct_scalar(node)).lower()
    if word not in (*_TRUE, *_FALSE):
        raise _not(node, "neither true nor false")
    return word in _TRUE


def _not(node: yaml.ScalarNode, what: str) -> ConstructorError:
    return ConstructorError(None, None, f"{str(node.value)[:40]!r} is {what}", node.start_mark)


def whole_number(loader: Any, node: yaml.ScalarNode) -> int | str:
    """Construct an integer; the text itself where it is beyond a double. Raises ConstructorError for what is none."""
    text = str(loader.construct_scalar(node))
    digits = text.replace("_", "").lower()
    if len(digits) > _MAX_DIGITS:
        return text
    sign, digits = (-1 if digits[:1] == "-" else 1), digits.lstrip("+-")
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "box"
    try:
        value = int(digits, 8 if octal else 0)
    except ValueError:
        raise _not(node, "no whole number") from None
    return text if value.bit_length() > 1023 else sign * value


def number(loader: Any, node: yaml.ScalarNode) -> int | float | str:
    """Construct a number that is written with a point or an exponent; 2.0 is 2 as soon as it is JSON."""
    text = str(loader.construct_scalar(node))
    digits = text.replace("_", "").lower()
    try:
        value = float(digits.replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        raise _not(node, "no number") from None
    if math.isinf(value) and "inf" not in digits:
        return text
    return int(value) if value.is_integer() and abs(value) < 1e21 else value
