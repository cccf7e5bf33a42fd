"""Files become documents: YAML or JSON as kubectl reads it, with the place of every mistake."""

import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from epd_operator.api.deployment import API_VERSION, GROUP, KIND
from epd_operator.api.finding import printable
from epd_operator.api.parse import too_large
from epd_operator.api.role_scale import SCALE_KIND
from epd_operator.cli import scalars

MAX_BYTES = 3 << 19
"""1.5 MiB: no larger object can be stored (etcd's request limit)."""


class Unreadable(Exception):  # noqa: N818  (a verdict on the input)
    """A file that holds no EPDDeployment; the message is a sentence that begins with the file."""

    def __str__(self) -> str:
        """The message on one line, without what could forge or hide lines on a terminal."""
        return printable(super().__str__())


@dataclass(frozen=True, slots=True)
class Document:
    """One EPDDeployment in a file."""

    file: str
    index: int
    """Position among the file's documents, from 0."""
    content: dict[str, Any]

    @property
    def name(self) -> str:
        """metadata.name, or a question mark where there is none."""
        metadata = self.content.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) else "?"


def read(file: str) -> list[Document]:
    """Every EPDDeployment of a file (`-` is standard input). Raises Unreadable.

    Documents of other kinds beside one are left alone, as kubectl would apply them; a file of nothing else is refused.
    """
    text = _text(file)
    documents, others = [], []
    for index, content in enumerate(_contents(file, text)):
        if content is None:
            continue
        for item in _items(file, index, content):
            if item.get("kind") == KIND and _group(item) == GROUP:
                documents.append(Document(file, index, item))
            else:
                others.append(item)
    if not documents and not others:
        raise Unreadable(f"{_shown(file)}: is empty; expected an {KIND} (apiVersion {API_VERSION})")
    meant = [item for item in others if not documents or _is_meant(item)]
    if not meant:
        return [_of_this_version(document) for document in documents]
    kind, version = meant[0].get("kind"), meant[0].get("apiVersion")
    found = f"kind {kind} of apiVersion {version or '(none)'}" if kind else "an object without kind"
    raise Unreadable(f"{_shown(file)}: holds {found}; expected kind {KIND} of apiVersion {API_VERSION}")


def _group(item: dict[str, Any]) -> str:
    return str(item.get("apiVersion", "")).partition("/")[0]


def _is_meant(item: dict[str, Any]) -> bool:
    """Whether an object of another kind is most likely an EPDDeployment with its kind or apiVersion mistyped."""
    kind = str(item.get("kind", ""))
    return kind.lower() == KIND.lower() or (_group(item) == GROUP and kind != SCALE_KIND)


def _of_this_version(document: Document) -> Document:
    version = document.content.get("apiVersion")
    if version != API_VERSION:
        raise Unreadable(f"{_shown(document.file)}: apiVersion {version} is not known; use {API_VERSION}")
    return document


def _shown(file: str) -> str:
    return "standard input" if file == "-" else file


def _text(file: str) -> str:
    try:
        if file == "-":
            if sys.stdin is None:
                raise Unreadable("standard input: is closed")
            data = sys.stdin.buffer.read(MAX_BYTES + 1)
        elif not file:
            raise Unreadable("'': is no file name")
        else:
            with Path(file).open("rb") as stream:
                data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"{_shown(file)}: {(error.strerror or str(error)).lower()}") from None
    except ValueError:
        raise Unreadable(f"{_shown(file)!r}: is no file name") from None
    if len(data) > MAX_BYTES:
        raise Unreadable(f"{_shown(file)}: is larger than 1.5 MiB, more than the API server stores in one object")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{_shown(file)}: is not text: byte {error.start} is not UTF-8") from None
    if "\0" in text:
        raise Unreadable(f"{_shown(file)}: is not text: it holds a NUL byte at {text.index(chr(0))}")
    return text


class _Loader(yaml.CSafeLoader):
    """libyaml with kubectl's scalars, but a key given twice is an error and a date stays the text it is."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse a key that is given twice, as kubectl does: one of the two would be lost."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag != scalars.MERGE and isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise ConstructorError(None, None, f"key {key.value!r} is given twice", key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else "")
        return super().construct_mapping(node, deep)


def _as_text(loader: _Loader, node: yaml.ScalarNode) -> object:
    return loader.construct_scalar(node)


scalars.use_kubectl_scalars(_Loader, alone=True)
for _tag, _constructor in (
    ("tag:yaml.org,2002:timestamp", _as_text),
    (scalars.MERGE, _as_text),  # as a value; keys of that name are merged before
    (scalars.BOOL, scalars.truth),
    (scalars.INT, scalars.whole_number),
    (scalars.FLOAT, scalars.number),
):
    _Loader.add_constructor(_tag, _constructor)


def _contents(file: str, text: str) -> Iterator[Any]:
    if (found := _json(text)) is not None:
        yield from found
        return
    try:
        yield from yaml.load_all(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
        what = " ".join(filter(None, (error.context, error.problem)))
        raise Unreadable(f"{_shown(file)}{place}: is not valid YAML: {what}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        column = error.position - text.rfind("\n", 0, error.position)
        raise Unreadable(f"{_shown(file)}:{line}:{column}: is not valid YAML: {error.reason}") from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise Unreadable(f"{_shown(file)}: is not valid YAML: {' '.join(str(error).split())[:200]}") from None
    except (RecursionError, OverflowError):
        raise Unreadable(f"{_shown(file)}: is nested too deeply to be read") from None


def _json(text: str) -> list[Any] | None:
    """The documents of a JSON file, one after another as kubectl takes them; None if it is none, or to be explained.

    JSON is not quite YAML: a pair of surrogates is one character.
    """
    rest, documents = text.strip(), []
    if not rest.startswith("{"):
        return None
    try:
        while rest:
            document, end = _DECODER.raw_decode(rest)
            documents.append(document)
            rest = rest[end:].lstrip()
    except (ValueError, RecursionError):
        return None
    return documents


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is given twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(text)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_number)


def _items(file: str, index: int, content: Any) -> list[dict[str, Any]]:
    if (problem := too_large(content)) is not None:
        raise Unreadable(f"{_shown(file)}: document {index} {problem.message}; {problem.remedy}")
    plain = _plain(file, index, content)
    if not isinstance(plain, dict):
        found = {"list": "a list", "str": "a text"}.get(type(plain).__name__, "a single value")
        raise Unreadable(f"{_shown(file)}: document {index} is {found}; expected an object of kind {KIND}")
    if plain.get("kind") in ("List", f"{KIND}List") and isinstance(plain.get("items"), list):
        if stray := next((item for item in plain["items"] if not isinstance(item, dict)), None):
            raise Unreadable(f"{_shown(file)}: document {index} lists {str(stray)[:40]!r}; expected objects")
        return list(plain["items"])
    return [plain]


_HALF = re.compile("[\ud800-\udfff]")


def _plain(file: str, index: int, value: Any) -> Any:
    """The value as JSON: keys are text, and what JSON cannot say is refused."""
    if isinstance(value, dict):
        return {_key(key): _plain(file, index, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(file, index, item) for item in value]
    if isinstance(value, str) and not value.isascii() and _HALF.search(value):
        raise Unreadable(f"{_shown(file)}: document {index} holds half a character (a lone surrogate)")
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    kind = "a number that is not finite" if isinstance(value, float) else f"a value of type {type(value).__name__}"
    raise Unreadable(f"{_shown(file)}: document {index} holds {kind}, which JSON cannot say")


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)
