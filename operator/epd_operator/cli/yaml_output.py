"""Objects as YAML, keys in the order in which Kubernetes' users expect them."""

import io
from collections.abc import Iterable, Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString


def dump_all(documents: Iterable[Mapping[str, Any]]) -> str:
    """A YAML stream of several documents; texts of several lines stay readable."""
    yaml = YAML()
    yaml.default_flow_style = False
    yaml.explicit_start = True
    yaml.width = 4096  # no folding: a folded flag would be hard to read and to search
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.ignore_aliases = lambda _: True  # type: ignore[method-assign]
    stream = io.StringIO()
    yaml.dump_all([_readable(document) for document in documents], stream)
    return stream.getvalue()


def _readable(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _readable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(item) for item in value]
    if isinstance(value, str):
        block = "\n" in value and all(line == line.rstrip() for line in value.splitlines()) and "\r" not in value
        return (
            LiteralScalarString(value) if block and value.isprintable() is False and "\t" not in value else str(value)
        )
    return value
