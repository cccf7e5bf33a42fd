"""Objects as YAML, keys in the order in which they are given."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from epd_operator.cli.scalars import use_kubectl_scalars


class _Dumper(yaml.CSafeDumper):
    """Texts of several lines stay readable, aliases abbreviate nothing, and what may be read as no text is quoted."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # A block keeps only text without trailing blanks, tabs and carriage returns as it is.
    block = "\n" in text and not any(blank in f"{text}\n" for blank in (" \n", "\t", "\r"))
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if block else None)


use_kubectl_scalars(_Dumper, alone=False)
_Dumper.add_representer(str, _text)
_Dumper.add_multi_representer(str, lambda dumper, text: _text(dumper, str(text)))


def dump_all(documents: Iterable[Mapping[str, Any]]) -> str:
    """A YAML stream of several documents. No line is folded: a folded flag would be hard to read and to search."""
    found = list(documents)
    text = _dumped(found, allow_unicode=True)
    # Marks that reorder or hide text on a terminal are escaped, and with them all that is not ASCII.
    return text if text.replace("\n", "").isprintable() else _dumped(found, allow_unicode=False)


def _dumped(documents: list[Mapping[str, Any]], *, allow_unicode: bool) -> str:
    text: str = yaml.dump_all(
        documents, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=1 << 20, allow_unicode=allow_unicode
    )
    return text
