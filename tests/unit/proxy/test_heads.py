"""What request heads say, what is refused in which words, and that a head that came before says the same again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_proxy.errors import ProxyError
from epd_proxy.heads import KEPT, MAX_HEADERS, RequestHead, keep, request_head

LINE = b"POST /v1/chat/completions HTTP/1.1"

REFUSED = {
    "a line feed alone": (b"GET / HTTP/1.1\nHost: x\n\r\n\r\n", 400, "not HTTP/1.1"),
    "no method": (b"/ HTTP/1.1\r\nHost: x\r\n\r\n", 400, "not HTTP/1.1"),
    "a later version": (b"GET / HTTP/3.0\r\nHost: x\r\n\r\n", 400, "not HTTP/1.1"),
    "both lengths": (
        LINE + b"\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
        "not HTTP/1.1",
    ),
    "two lengths": (LINE + b"\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400, "not HTTP/1.1"),
    "a folded header": (LINE + b"\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 400, "not HTTP/1.1"),
    "a second blank": (b"POST  /v1/chat/completions HTTP/1.1\r\nHost: x\r\n\r\n", 400, "METHOD SP TARGET SP VERSION"),
    "no host": (LINE + b"\r\n\r\n", 400, "no Host header"),
    "two hosts": (LINE + b"\r\nHost: x\r\nHost: x\r\n\r\n", 400, "host is repeated"),
    "two keys": (LINE + b"\r\nHost: x\r\nAuthorization: a\r\nauthorization: b\r\n\r\n", 400, "authorization is rep"),
    "many headers": (
        LINE + b"\r\nHost: x\r\n" + b"".join(b"h%d: 1\r\n" % n for n in range(MAX_HEADERS)) + b"\r\n",
        431,
        f"more than {MAX_HEADERS} headers",
    ),
    "another coding": (LINE + b"\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400, "only chunked is taken"),
    "chunks in HTTP/1.0": (
        b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
        "chunked is taken, and only in HTTP/1.1",
    ),
    "a compressed body": (LINE + b"\r\nHost: x\r\nContent-Encoding: gzip\r\n\r\n", 415, "compressed"),
}


def refusal_of(raw: bytes) -> ProxyError | None:
    try:
        return request_head(raw, {}).refusal
    except ProxyError as error:
        return error


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    raw, status, words = REFUSED[case]
    error = refusal_of(raw)
    assert error is not None
    assert error.status == status
    assert words in error.message


def test_what_a_head_says() -> None:
    raw = b"POST /v1/chat/completions?a=1 HTTP/1.1\r\nHOST: x\r\nContent-Length: 12\r\nX-A: 1\r\nx-a: 2\r\n\r\n"
    expected = {b"host": b"x", b"content-length": b"12", b"x-a": b"2"}
    assert request_head(raw, {}) == RequestHead(
        b"POST", b"/v1/chat/completions", expected, 12, chunked=False, plain=False, keep_alive=True
    )


@pytest.mark.parametrize(
    ("head", "keep_alive"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", False),
        (b"GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n", True),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
    ],
)
def test_keep_alive(head: bytes, keep_alive: bool) -> None:
    assert request_head(head, {}).keep_alive is keep_alive


names = st.sampled_from([b"host", b"Accept", b"authorization", b"content-length", b"connection", b"x-request-id"])
values = st.sampled_from([b"x", b"0", b"17", b"close", b"", b"a b", b"\xff"])


@given(
    st.lists(st.lists(st.tuples(names, values), max_size=5), max_size=6), st.sampled_from([b"HTTP/1.1", b"HTTP/1.0"])
)
def test_a_head_that_came_before_says_the_same(many: list[list[tuple[bytes, bytes]]], version: bytes) -> None:
    known: dict[bytes, RequestHead] = {}
    for headers in many * 2:
        raw = b"GET /v1/models %b\r\n%b\r\n" % (version, b"".join(b"%b: %b\r\n" % pair for pair in headers))
        answers = []
        for kept in (known, {}):
            try:
                found = request_head(raw, kept)
            except ProxyError as error:
                answers.append(str(error))
            else:
                answers.append(f"{found.refusal} {found.headers} {found.length} {found.keep_alive} {found.path!r}")
        assert answers[0] == answers[1]
    assert all(head.refusal is None for head in known.values())


def test_no_more_are_kept_than_there_is_room_for() -> None:
    known: dict[bytes, int] = {}
    for number in range(3 * KEPT):
        keep(known, b"%d" % number, number)
        assert known[b"%d" % number] == number
        assert len(known) <= KEPT
    keep(known, bytes(100_000), 0)
    assert bytes(100_000) not in known
