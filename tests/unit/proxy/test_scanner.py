"""What is forwarded is the request that came, but for the media items: by example and by 100,000 generated bodies."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epd_proxy.config import Media
from epd_proxy.errors import ProxyError
from epd_proxy.items import find_items
from epd_proxy.rewrite import Edit, set_members, splice
from epd_proxy.scanner import LONG, MalformedError, loads, punch, scan

MEDIA = Media()


def rewritten(body: bytes, members: dict[str, bytes] | None = None) -> bytes:
    """Scan a body and put each media item together again under a uuid, as for a consumer that gets the media."""
    scanned = scan(punch(body, len(body)))
    items = find_items(scanned, body, MEDIA)
    view = memoryview(body)
    edits: list[Edit] = []
    for number, item in enumerate(items):
        item.uuid = f"uuid-{number}"
        edits.append(Edit(item.start, item.end, list(item.written(view))))
    edits += set_members(scanned, members or {})
    return b"".join(splice(view, len(body), edits))


def pairs(text: bytes) -> Any:
    """Parse JSON so that nothing is lost: objects as pairs, numbers as written."""
    return json.loads(
        text, object_pairs_hook=lambda p: ("object", p), parse_int=str, parse_float=str, parse_constant=str
    )


def is_media(part: Any) -> bool:
    return isinstance(part, tuple) and any(name in ("image_url", "input_audio") for name, _ in part[1])


def expected(value: Any) -> Any:
    """Return what the rewritten body must be: media parts normalised, everything else as it was."""
    numbers = iter(range(10_000))

    def part(parsed: Any) -> Any:
        if not is_media(parsed):
            return parsed
        members = dict(parsed[1])
        kind = "image_url" if "image_url" in members else "input_audio"
        wanted = "url" if kind == "image_url" else "data"
        inner = members[kind]
        first = (wanted, dict(inner[1])[wanted]) if isinstance(inner, tuple) else (wanted, inner)
        rest = [(k, v) for k, v in dict(inner[1]).items() if k != wanted] if isinstance(inner, tuple) else []
        others = [(k, v) for k, v in members.items() if k not in ("type", "uuid", kind)]
        written = [("type", kind), (kind, ("object", [first, *rest])), *others, ("uuid", f"uuid-{next(numbers)}")]
        return ("object", written)

    def message(parsed: Any) -> Any:
        return (
            "object",
            [(k, list(map(part, v)) if k == "content" and isinstance(v, list) else v) for k, v in parsed[1]],
        )

    return ("object", [(k, list(map(message, v)) if k == "messages" else v) for k, v in value[1]])


class Bodies:
    """Generates chat requests as text, with everything that JSON allows."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def blank(self) -> str:
        return self.random.choice(["", "", "", " ", "\n", "\t \r\n"])

    def string(self, length: int = 12) -> str:
        alphabet = [
            '"',
            "\\",
            "/",
            "\b",
            "\n",
            "\t",
            "é",
            "漢",
            "😀",
            "\u2028",
            "a",
            "b",
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "_",
            "u",
        ]
        return "".join(self.random.choice(alphabet) for _ in range(self.random.randrange(length)))

    def quoted(self, value: str) -> str:
        """Write a string, with as many ways of escaping as there are."""
        out = []
        for character in value:
            kind = self.random.randrange(12)
            if character in '"\\\b\n\t':
                out.append(json.dumps(character)[1:-1])
            elif kind == 0:
                out.append(json.dumps(character)[1:-1] if ord(character) > 127 else f"\\u{ord(character):04x}")
            elif character == "/" and kind < 6:
                out.append("\\/")
            else:
                out.append(character)
        return f'"{"".join(out)}"'

    def number(self) -> str:
        big = "-" * self.random.randrange(2) + "9" * self.random.randrange(1, 40)
        return self.random.choice([big, "0", "-0", "1e400", "-1.5E-10", "0.1", "1" + "0" * 300, "NaN", "Infinity"])

    def value(self, depth: int = 0) -> str:
        kind = self.random.randrange(7 if depth < 4 else 4)
        if kind == 0:
            return self.number()
        if kind == 1:
            return self.quoted(self.string())
        if kind in (2, 3):
            return self.random.choice(["true", "false", "null"])
        if kind in (4, 5):
            return self.array([self.value(depth + 1) for _ in range(self.random.randrange(4))])
        return self.object([(self.string(5), self.value(depth + 1)) for _ in range(self.random.randrange(4))])

    def array(self, values: list[str]) -> str:
        return f"[{self.blank()}{f'{self.blank()},{self.blank()}'.join(values)}{self.blank()}]"

    def object(self, members: list[tuple[str, str]]) -> str:
        written = [f"{self.quoted(k)}{self.blank()}:{self.blank()}{v}" for k, v in members]
        return f"{{{self.blank()}{f'{self.blank()},{self.blank()}'.join(written)}{self.blank()}}}"

    def media(self) -> str:
        size = self.random.choice([0, 3, 40, LONG - 1, LONG, 3 * LONG])
        data = "".join(self.random.choices("ABCDxyz0189+/", k=size))
        if self.random.randrange(4) == 0:
            members = [("data", self.quoted(data)), ("format", '"wav"')]
            self.random.shuffle(members)
            return self.part("input_audio", self.object(members))
        url = self.quoted(f"data:image/png;base64,{data}=")
        if self.random.randrange(4) == 0:
            return self.part("image_url", url)
        members = [("url", url), *[("detail", '"low"')] * self.random.randrange(2)]
        if self.random.randrange(6) == 0:
            members.insert(0, ("url", '"data:,first"'))
        return self.part("image_url", self.object(members))

    def part(self, kind: str, value: str) -> str:
        members = [(kind, value)]
        if self.random.randrange(3):
            members.append(("type", f'"{kind}"'))
        if self.random.randrange(3) == 0:
            members.append(("uuid", '"of-a-client"'))
        if self.random.randrange(4) == 0:
            members.append((f"x{self.string(4)}", self.value(2)))
        self.random.shuffle(members)
        return self.object(members)

    def text_part(self) -> str:
        text = self.string(30) + self.random.choice(["", ' {"image_url": "data:image/png;base64,AAAA"} '])
        return self.object([("type", '"text"'), ("text", self.quoted(text))])

    def message(self) -> str:
        kinds: list[Callable[[], str]] = [self.text_part, self.media, lambda: self.quoted(self.string())]
        parts = [self.random.choice(kinds)() for _ in range(self.random.randrange(4))]
        content = self.array(parts) if self.random.randrange(4) else self.quoted(self.string(40))
        members = [("role", '"user"'), ("content", content)]
        if self.random.randrange(4) == 0:
            members.append((f"y{self.string(4)}", self.value(2)))
        self.random.shuffle(members)
        return self.object(members)

    def body(self) -> str:
        members = [("messages", self.array([self.message() for _ in range(self.random.randrange(3))]))]
        members += [(f"z{self.string(4)}", self.value()) for _ in range(self.random.randrange(4))]
        if self.random.randrange(5) == 0:
            members.append(self.random.choice(members[1:] or [("model", '"m"')]))
        self.random.shuffle(members)
        return self.blank() + self.object(members) + self.blank()


BODIES = int(os.environ.get("EPD_FUZZ_BODIES") or (100_000 if os.environ.get("CI") else 5_000))
"""`make fuzz-proxy N=1000000` for more."""


def test_generated_bodies() -> None:
    for seed in range(BODIES):
        body = Bodies(seed).body().encode()
        assert pairs(rewritten(body)) == expected(pairs(body)), seed


def test_top_level_members_are_set_wherever_they_are() -> None:
    for seed in range(500):
        body = Bodies(seed).body().encode()
        got = json.loads(rewritten(body, {"stream": b"false", "max_tokens": b"1"}))
        want = {**json.loads(body), "stream": False, "max_tokens": 1}
        assert repr({k: v for k, v in got.items() if k != "messages"}) == repr(
            {k: v for k, v in want.items() if k != "messages"}
        )


def test_members_named_twice_are_set_twice() -> None:
    body = b'{"stream":true,"messages":[],"stream":1}'
    assert rewritten(body, {"stream": b"false"}) == b'{"stream":false,"messages":[],"stream":false}'
    assert rewritten(b'{"messages":[]}', {"a": b"1", "b": b"2"}) == b'{"messages":[],"a":1,"b":2}'


def test_media_are_cut_out_and_never_copied() -> None:
    data = b"A" * 1_000_000
    body = b'{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,%b"}}]}]}' % data
    remainder = punch(body, len(body))
    assert len(remainder.text) < 200
    (item,) = find_items(scan(remainder), body, MEDIA)
    pieces = item.written(memoryview(body))
    assert any(isinstance(p, memoryview) and len(p) > len(data) for p in pieces)
    assert sum(len(p) for p in pieces if isinstance(p, bytes)) < 200


def steps(body: bytes) -> int:
    """How many functions are called for a body, Python's and C's."""
    count = 0

    def seen(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        find_items(scan(punch(body, len(body))), body, MEDIA)
    finally:
        sys.setprofile(None)
    return count


def test_work_does_not_grow_with_media() -> None:
    """P40: what is done for a large item is done in C at the speed of memory, in one go."""
    part = b'{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,%b"}}]}]}'
    assert steps(part % (b"A" * 30_000_000)) == steps(part % (b"A" * 100_000))


def test_bare_audio_is_cut_out_too() -> None:
    body = b'{"messages":[{"content":[{"input_audio":{"format":"wav", "data" : "%b"}}]}]}' % (b"B" * 100_000)
    assert len(punch(body, len(body)).text) < 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"a"}',
        b'{"a":}',
        b'{"a":1,}',
        b'{"a":1}}',
        b'{"a":1} x',
        b'{"messages":{}}',
        b'{"messages":[1]}',
        b'{"messages":[{"content":[7]}]}',
        b'{"messages":[{"content":[[]]}]}',
        b'{"messages":[{"content":[{}]}',
        b'{"a":"\n"}',
        b'{"a":"\\x"}',
        b'{"a":tru}',
        b";base64," + b"A" * 5000,
        b'{"a":;base64,' + b"A" * 5000 + b'"}',
        b'{"a":";base64,' + b"A" * 5000,
        b'{"a":";base64,' + b"A" * 5000 + b'\\"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
        '{"messages":[]}'.encode("utf-16"),
        b"\xef\xbb\xbf{}",
    ],
)
def test_what_is_not_a_request(body: bytes) -> None:
    with pytest.raises(MalformedError):
        scan(punch(body, len(body)))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_or_read(body: bytes) -> None:
    try:
        scanned = scan(punch(body, len(body)))
        find_items(scanned, body, MEDIA)
    except (MalformedError, ProxyError):
        return
    json.loads(body)


@settings(max_examples=300, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.integers(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_loads_reads_what_json_reads(value: Any) -> None:
    text = json.dumps(value)
    assert loads(f" {text}\n") == value


def test_a_token_of_a_client_is_only_text() -> None:
    body = b'{"messages":[{"content":[{"image_url":{"url":"data:image/png;base64,@%b:0@"}}]}]}' % (b"0" * 24)
    (item,) = find_items(scan(punch(body, len(body))), body, MEDIA)
    assert item.run is None


@pytest.mark.parametrize("part", ['{"image_url":"data:,x","type":"text"}', '{"type":"image_embeds"}', '{"uuid":"x"}'])
def test_refused_parts(part: str) -> None:
    body = f'{{"messages":[{{"content":[{part}]}}]}}'.encode()
    with pytest.raises(ProxyError):
        find_items(scan(punch(body, len(body))), body, MEDIA)
