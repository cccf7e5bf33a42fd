"""Read a user's flags as vLLM's own parser reads them, with the flag table of the release.

vLLM's parser is argparse with a layer before it: underscores become dashes, JSON flags may be given in parts, `-O2` is
a flag of its own, and unique prefixes are accepted. Everything wrong is returned as data and nothing raises, so one
look shows every mistake.
Source: utils/argparse_utils.py, `FlexibleArgumentParser.parse_args`; 0.28 to 0.33 agree but for the flag table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from epd_operator.engine.capabilities import Capabilities, Flag, canonical_spelling, nearest
from epd_operator.engine.flag_values import Trouble, read_size, read_value

ParseTrouble = Literal["unknown-flag", "ambiguous-flag", "missing-value", "unexpected-value", "stray-value"]

NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


@dataclass(frozen=True, slots=True)
class Argument:
    """One flag as a user wrote it."""

    name: str  # canonical: --tensor-parallel-size
    spelling: str  # as written (dashes for underscores), without a value: -tp, --ec-transfer-config.ec_role
    texts: tuple[str, ...]  # raw values; empty for a flag without one
    value: Any  # as Python sees it: bool, number, string, decoded JSON; a list where the flag takes several
    index: int  # position of the flag in the list that was given
    keys: tuple[str, ...] = ()  # of a JSON flag in parts: the path inside it
    repeats: bool = False  # given again it adds a value instead of replacing the last one

    @property
    def text(self) -> str:
        """The flag and its values, as one would type them."""
        return " ".join((self.spelling, *self.texts))


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """Something that vLLM's parser refuses."""

    kind: ParseTrouble | Trouble
    index: int  # position in the list that was given
    spelling: str  # the flag as written, or the stray value
    found: str  # the part that is wrong: a flag, a value, a field
    expected: str = ""  # completes "must be ..."
    nearest: str | None = None
    flag: Flag | None = None


class ParsedArguments(NamedTuple):
    """All flags of a list, in order, and all problems."""

    arguments: tuple[Argument, ...]
    problems: tuple[ArgumentProblem, ...]

    def all(self, name: str) -> tuple[Argument, ...]:
        """Every time that a flag was given, by canonical name."""
        return tuple(argument for argument in self.arguments if argument.name == name)

    def last(self, name: str) -> Argument | None:
        """The time that counts: vLLM takes the last one."""
        given = self.all(name)
        return given[-1] if given else None

    @property
    def values(self) -> Mapping[str, Any]:
        """What vLLM makes of the list: canonical name -> value. JSON given in parts replaces JSON given whole."""
        whole: dict[str, Any] = {}
        for argument in self.arguments:
            if argument.repeats:
                whole[argument.name] = [*whole.get(argument.name, []), argument.value]
            elif not argument.keys:
                whole[argument.name] = argument.value
        parts: dict[str, Any] = {}
        for argument in self.arguments:
            if argument.keys:
                _merge(parts.setdefault(argument.name, {}), argument.keys, argument.value)
        return {**whole, **parts}


@dataclass(frozen=True, slots=True)
class _Token:
    text: str  # with dashes for underscores, for a flag
    index: int


def parse_args(args: Sequence[str], capabilities: Capabilities) -> ParsedArguments:
    """Read `args`, which stand after the model in `vllm serve MODEL ...`."""
    reader = _Reader(capabilities)
    rest = reader.take_parts([_Token(_prepared(text), index) for index, text in enumerate(args)])
    reader.take_flags(rest)
    arguments = sorted(reader.arguments, key=lambda argument: argument.index)
    return ParsedArguments(tuple(arguments), tuple(sorted(reader.problems, key=lambda problem: problem.index)))


def _prepared(text: str) -> str:
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        return canonical_spelling(name) + equals + value
    return text


def _merge(into: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        inner = into.get(key)
        into[key] = inner if isinstance(inner, dict) else {}
        into = into[key]
    old = into.get(keys[-1])
    if isinstance(value, list) and isinstance(old, list):
        into[keys[-1]] = old + value
    elif isinstance(value, dict) and isinstance(old, dict):
        for key, item in value.items():
            _merge(old, (key,), item)
    else:
        into[keys[-1]] = value


class _Match(NamedTuple):
    flag: Flag
    spelling: str  # the whole spelling that the user's one stands for
    stuck: str | None = None  # a value without a space before it: -n2


class _Reader:
    """Works through a list once; arguments and problems collect on it."""

    def __init__(self, capabilities: Capabilities) -> None:
        self.capabilities = capabilities
        self.arguments: list[Argument] = []
        self.problems: list[ArgumentProblem] = []

    def take_parts(self, tokens: list[_Token]) -> list[_Token]:
        """Take the JSON flags given in parts (`--flag.key value`); return what is left."""
        rest: list[_Token] = []
        position = 0
        while position < len(tokens):
            token = tokens[position]
            position += 1
            name, equals, value = token.text.partition("=")
            if not token.text.startswith("-") or "." not in name:
                rest.append(token)
                continue
            if not equals:
                if position == len(tokens):
                    self._problem("missing-value", token, token.text, "followed by a value")
                    break
                value = tokens[position].text
                position += 1
            self._part(token, name, value)
        return rest

    def _part(self, token: _Token, name: str, text: str) -> None:
        head, *keys = name.removesuffix("+").split(".")
        match = self._resolve(token, head)
        if match is None:
            return
        flag = match.flag
        if not flag.json:
            self._problem("unexpected-value", token, name, "given without keys, since it takes no JSON", flag=flag)
            return
        value: Any = text.split(",") if name.endswith("+") else _json_or_text(text)
        whole: dict[str, Any] = {}
        _merge(whole, keys, value)
        try:
            whole_text = json.dumps(whole)
        except (ValueError, RecursionError):  # a number or a nesting beyond what can be written
            self.problems.append(ArgumentProblem("invalid-type", token.index, name, text, "JSON", None, flag))
            return
        self.arguments.append(Argument(flag.name, name, (text,), value, token.index, tuple(keys)))
        self._check(flag, token, name, whole_text)

    def take_flags(self, tokens: list[_Token]) -> None:
        """Take all flags with their values; after `--` nothing is a flag."""
        position = 0
        while position < len(tokens):
            token = tokens[position]
            position += 1
            if token.text == "--":
                for stray in tokens[position - 1 :]:
                    self._stray(stray)
                return
            if not self._is_flag(token.text):
                self._stray(token)
                continue
            end = position
            while end < len(tokens) and not self._is_flag(tokens[end].text):
                end += 1
            position += self._flag(token, [value.text for value in tokens[position:end]])

    def _stray(self, token: _Token) -> None:
        self._problem("stray-value", token, token.text, "preceded by a flag")

    def _is_flag(self, text: str) -> bool:
        if not text.startswith("-") or text == "-":
            return False
        name = text.partition("=")[0]
        if name in self.capabilities.spellings or self._candidates(name):
            return True
        return not (NEGATIVE_NUMBER.fullmatch(text) or " " in text)

    def _candidates(self, name: str) -> list[str]:
        """Spellings that an abbreviation may mean; a short flag may also have its value stuck to it (`-n2`)."""
        short = "" if name.startswith("--") else name[:2]
        return [spelling for spelling in self.capabilities.spellings if spelling.startswith(name) or spelling == short]

    def _resolve(self, token: _Token, name: str) -> _Match | None:
        exact = self.capabilities.spellings.get(name)
        if exact is not None:
            return _Match(exact, name)
        candidates = self._candidates(name)
        if len(candidates) == 1:
            spelling = candidates[0]
            stuck = None if spelling.startswith(name) else name.removeprefix(spelling)
            return _Match(self.capabilities.spellings[spelling], spelling, stuck)
        if candidates:
            self._problem("ambiguous-flag", token, name, f"one of {', '.join(sorted(candidates))}")
        else:
            near = nearest(name, self.capabilities.spellings)
            self._problem("unknown-flag", token, name, f"a flag of vLLM {self.capabilities.version}", near=near)
        return None

    def _flag(self, token: _Token, following: list[str]) -> int:
        """Take one flag; return how many of the `following` values belong to it."""
        if token.text.startswith("-O"):
            return self._optimization_level(token, following)
        name, equals, value = token.text.partition("=")
        match = self._resolve(token, name)
        if match is None:
            return len(following)
        flag = match.flag
        if match.stuck is not None:
            name, value = match.spelling, match.stuck + equals + value
        if equals or match.stuck is not None:
            self._one(flag, token, name, value)
            return 0
        if not flag.takes_value:
            self.arguments.append(Argument(flag.name, name, (), match.spelling not in flag.off, token.index))
            return 0
        wanted = following if flag.nargs in ("+", "*") else following[:1]
        if not wanted and flag.nargs not in ("?", "*"):
            self._problem("missing-value", token, name, "followed by a value", flag=flag)
            return 0
        self._values(flag, token, name, wanted)
        return len(wanted)

    def _one(self, flag: Flag, token: _Token, name: str, value: str) -> None:
        if flag.takes_value:
            self._values(flag, token, name, [value])
        else:
            self._problem("unexpected-value", token, value, "given without a value", flag=flag)

    def _optimization_level(self, token: _Token, following: list[str]) -> int:
        """`-O2`, `-O=2`, `-O 2` all mean `--optimization-level 2`."""
        flag = self.capabilities.spellings.get("--optimization-level")
        if flag is None:
            self._problem("unknown-flag", token, token.text, f"a flag of vLLM {self.capabilities.version}")
            return len(following)
        if token.text == "-O":
            if not following:
                self._problem("missing-value", token, token.text, "followed by a value", flag=flag)
            self._values(flag, token, "-O", following[:1])
            return len(following[:1])
        self._values(flag, token, "-O", [token.text[2:].removeprefix("=")])
        return 0

    def _values(self, flag: Flag, token: _Token, name: str, texts: list[str]) -> None:
        values = [self._check(flag, token, name, text) for text in texts]
        several = flag.nargs in ("+", "*")
        value = values if several else values[0] if values else True
        self.arguments.append(Argument(flag.name, name, tuple(texts), value, token.index, repeats=flag.repeats))

    def _check(self, flag: Flag, token: _Token, name: str, text: str) -> Any:
        value, wrong = read_value(flag, text, self.capabilities)
        if wrong is not None:
            self.problems.append(
                ArgumentProblem(wrong.trouble, token.index, name, wrong.found, wrong.expected, wrong.nearest, flag)
            )
        return value

    def _problem(
        self,
        kind: ParseTrouble,
        token: _Token,
        found: str,
        expected: str,
        *,
        near: str | None = None,
        flag: Flag | None = None,
    ) -> None:
        self.problems.append(ArgumentProblem(kind, token.index, token.text, found, expected, near, flag))


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return read_size(text)
    except (ValueError, OverflowError):
        return text
