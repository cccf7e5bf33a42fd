"""Objects as YAML, keys in the order in which they are given."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml


class _Dumper(yaml.CSafeDumper):
    """Texts of several lines stay readable, and nothing is abbreviated by aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # A block keeps only text without trailing blanks, tabs and carriage returns as it is.
    block = "\n" in text and not any(blank in f"{text}\n" for blank in (" \n", "\t", "\r"))
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if block else None)


_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(str, lambda dumper, text: _text(dumper, str(text)))


def dump_all(documents: Iterable[Mapping[str, Any]]) -> str:
    """A YAML stream of several documents. No line is folded: a folded flag would be hard to read and to search."""
    text: str = yaml.dump_all(
        documents, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=1 << 20, allow_unicode=True
    )
    return text
