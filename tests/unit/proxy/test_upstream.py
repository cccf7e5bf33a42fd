"""Answers in whatever pieces they come, with heads that came before or not."""

import asyncio

import pytest

from epd_proxy.gather import BULK, MOMENT, PAUSE
from epd_proxy.pool import EnginePool, PoolTimes
from epd_proxy.upstream import EngineConnection, EngineError, Head, Sink

OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
LENGTH = OK + b"content-length: 5\r\n\r\nhello"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
BUSY = b"HTTP/1.1 503 Busy\r\nretry-after: 7\r\ncontent-length: 2\r\n\r\nno"
CLOSES = OK + b"connection: close\r\ncontent-length: 5\r\n\r\nhello"


class Transport(asyncio.Transport):
    """Takes what is written."""

    closed = False
    _reading = True

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Say nothing."""

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True


class Answer(Sink):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.head: Head | None = None
        self.body = b""
        self.complete = False
        self.failure: EngineError | None = None

    def on_answer(self, head: Head, body: bytes, complete: bool) -> None:
        assert self.head is None
        self.head = head
        self.on_body(body, complete)

    def on_body(self, data: bytes, complete: bool) -> None:
        assert not self.complete
        self.body += data
        self.complete = complete

    def on_failure(self, failure: EngineError) -> None:
        self.failure = failure


class Engine:
    """A connection to an engine that says what a test has it say."""

    def __init__(self) -> None:
        self.pool = EnginePool("127.0.0.1", 1, "decode", PoolTimes(1, 60))
        self.transport = Transport()
        self.connection = EngineConnection(self.pool)
        self.connection.connection_made(self.transport)

    def answer(self, *pieces: bytes) -> Answer:
        sink = Answer()
        self.connection.start((b"request",), sink, 10)
        for piece in pieces:
            self.connection.data_received(piece)
        return sink


@pytest.mark.parametrize("raw", [LENGTH, CHUNKED, BUSY, CLOSES])
async def test_cut_anywhere_the_answer_is_the_same_the_first_time_and_again(raw: bytes) -> None:
    expected = Engine().answer(raw)
    assert expected.complete
    for cut in range(1, len(raw)):
        for pieces in ((raw[:cut], raw[cut:]), (raw,)):
            engine = Engine()
            sink = engine.answer(*pieces)
            assert (sink.head, sink.body, sink.complete) == (expected.head, expected.body, True)
            assert engine.transport.closed == (raw is CLOSES)


async def test_answers_of_all_kinds_follow_each_other_on_one_connection() -> None:
    engine = Engine()
    for raw in (LENGTH, BUSY, LENGTH, CHUNKED, LENGTH, LENGTH, BUSY):
        sink = engine.answer(raw)
        assert sink.complete
        assert sink.head is not None
        assert sink.body == raw[raw.index(b"\r\n\r\n") + 4 :]
        assert not engine.transport.closed


@pytest.mark.parametrize("behind", [b"H", b"HTTP/1.1 200 OK\r\n", LENGTH])
async def test_what_comes_behind_an_answer_closes_the_connection(behind: bytes) -> None:
    engine = Engine()
    assert engine.answer(LENGTH).complete
    assert not engine.transport.closed
    assert engine.answer(LENGTH + behind).body
    assert engine.transport.closed


async def test_a_head_that_came_before_is_not_taken_for_an_answer_before_it_has_ended() -> None:
    """Where only the end of the head is missing, and the length happens to fit."""
    fits = OK + b"content-length: %d"
    length = len(fits) - 3 + 1
    head = fits % length
    assert Engine().answer(head + b"\r\n\r\n" + bytes(length)).complete
    engine = Engine()
    sink = engine.answer(head + b"\r")
    assert sink.head is None
    engine.connection.data_received(b"\n\r\n" + bytes(length))
    assert sink.complete
    assert sink.body == bytes(length)


async def test_an_engine_that_speaks_no_http_fails_the_request() -> None:
    sink = Engine().answer(b"SSH-2.0-x\r\n\r\n")
    assert sink.failure is not None
    assert "not HTTP" in str(sink.failure)


class TestBursts:
    """A stream whose bytes keep coming is read in handfuls."""

    CHUNK = b"5\r\nhello\r\n"

    def begin(self, engine: Engine, reads: int) -> Answer:
        return engine.answer(OK + b"transfer-encoding: chunked\r\n\r\n", *[self.CHUNK] * reads)

    async def test_a_burst_rests_until_the_next_tick(self) -> None:
        engine = Engine()
        sink = self.begin(engine, 1)
        assert engine.transport.is_reading()
        engine.connection.data_received(self.CHUNK)
        assert not engine.transport.is_reading()
        await asyncio.sleep(PAUSE * 5)
        assert engine.transport.is_reading()
        assert sink.body == self.CHUNK * 2

    async def test_a_stream_at_a_models_pace_never_rests(self, monkeypatch: pytest.MonkeyPatch) -> None:
        engine = Engine()
        now = 0.0
        monkeypatch.setattr(engine.pool, "now", lambda: now)
        self.begin(engine, 0)
        for _ in range(10):
            now += MOMENT * 1.01
            engine.connection.data_received(self.CHUNK)
            assert engine.transport.is_reading()

    async def test_an_answer_that_is_no_stream_never_rests(self) -> None:
        engine = Engine()
        engine.answer(OK + b"content-length: 1000\r\n\r\n")
        for _ in range(10):
            engine.connection.data_received(b"hello")
            assert engine.transport.is_reading()

    async def test_large_chunks_never_rest(self) -> None:
        engine = Engine()
        self.begin(engine, 0)
        for _ in range(10):
            engine.connection.data_received(b"%x\r\n" % BULK + bytes(BULK) + b"\r\n")
            assert engine.transport.is_reading()

    async def test_a_rest_does_not_end_what_a_slow_client_began(self) -> None:
        engine = Engine()
        self.begin(engine, 2)
        engine.connection.pause()
        await asyncio.sleep(PAUSE * 5)
        assert not engine.transport.is_reading()
        engine.connection.resume(10)
        assert engine.transport.is_reading()

    async def test_a_client_that_catches_up_does_not_end_the_rest(self) -> None:
        engine = Engine()
        self.begin(engine, 2)
        engine.connection.pause()
        engine.connection.resume(10)
        assert not engine.transport.is_reading()
        await asyncio.sleep(PAUSE * 5)
        assert engine.transport.is_reading()

    async def test_a_connection_may_close_while_it_rests(self) -> None:
        engine = Engine()
        sink = self.begin(engine, 2)
        engine.connection.connection_lost(None)
        await asyncio.sleep(PAUSE * 5)
        assert not engine.transport.is_reading()
        assert sink.failure is not None
