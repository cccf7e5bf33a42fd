import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from epd_operator.local.readiness import probe


def http(status: str, body: bytes) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


@pytest.fixture
def answering() -> Iterator[Callable[[bytes], int]]:
    """A server that sends these bytes whatever it is asked, and its port."""
    servers: list[socket.socket] = []

    def start(answer: bytes) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        return int(server.getsockname()[1])

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (http("200 OK", b'{"data": [{"id": "other"}]}'), "serves other instead of tiny"),
        (http("200 OK", b'{"data": []}'), "serves no model instead of tiny"),
        (http("200 OK", b"{}"), "serves no model instead of tiny"),
        (http("200 OK", b"\xff"), "serves no model instead of tiny"),
        (http("200 OK", b'[["id"]]'), "serves no model instead of tiny"),
        (http("401 Unauthorized", b""), "answers GET /v1/models with status 401"),
        (http("503 Service Unavailable", b""), "answers GET /v1/models with status 503"),
        (b"SSH-2.0-OpenSSH\r\n", "does not answer: SSH-2.0-OpenSSH"),
        (b"", "does not answer: Remote end closed connection without response"),
    ],
)
def test_not_ready(answering: Callable[[bytes], int], answer: bytes, says: str) -> None:
    found = probe("127.0.0.1", answering(answer), "tiny", "key")
    assert not found.serves
    assert found.says.strip() == says


def test_ready(answering: Callable[[bytes], int]) -> None:
    assert probe("127.0.0.1", answering(http("200 OK", b'{"data": [{"id": "tiny"}]}')), "tiny", None).serves


def test_nobody_listens() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        assert probe("127.0.0.1", held.getsockname()[1], "tiny", None).says == "does not listen yet"


def test_no_answer_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        found = probe("127.0.0.1", silent.getsockname()[1], "tiny", None, timeout_seconds=0.1)
    assert found.says == "does not answer: timed out"
