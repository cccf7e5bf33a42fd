import socket

import pytest

from epd_operator.local.errors import LocalError
from epd_operator.local.ports import ADDRESS, HeldPorts


def listening(port: int) -> socket.socket:
    """Listen as vLLM and asyncio do."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((ADDRESS, port))
    server.listen()
    return server


def test_who_is_told_the_port_can_listen_and_nobody_else() -> None:
    with HeldPorts() as ports:
        port = ports.take()
        with listening(port), pytest.raises(OSError, match="in use"), socket.socket() as other:
            other.bind((ADDRESS, port))
        with pytest.raises(OSError, match="in use"), socket.socket() as other:
            other.bind((ADDRESS, port))


def test_ports_are_given_back() -> None:
    with HeldPorts() as ports:
        port = ports.take()
    with socket.socket() as other:
        other.bind((ADDRESS, port))


def test_two_holders_never_get_the_same_port() -> None:
    with HeldPorts() as first, HeldPorts() as second:
        taken = [holder.take() for _ in range(200) for holder in (first, second)]
    assert len(set(taken)) == len(taken)


def test_ports_in_a_row() -> None:
    with HeldPorts() as ports:
        first = ports.take(5)
        with pytest.raises(OSError, match="in use"), socket.socket() as other:
            other.bind((ADDRESS, first + 4))
        assert ports.take(5) not in range(first - 4, first + 5)


def test_more_ports_in_a_row_than_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("epd_operator.local.ports._TRIES", 2)
    with HeldPorts() as ports, pytest.raises(LocalError, match="found no 70000 free ports in a row"):
        ports.take(70_000)


def test_the_users_port_may_be_held_once() -> None:
    with HeldPorts() as search:
        port = search.take()
    with HeldPorts() as first, HeldPorts() as second:
        assert first.take_exactly(port) == port
        with pytest.raises(LocalError, match=rf"--port {port}: .*another `epd run` holds it; choose another"):
            second.take_exactly(port)
        listening(port).close()


def test_the_users_port_may_be_taken() -> None:
    with HeldPorts() as ports, socket.create_server((ADDRESS, 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LocalError, match="another program listens there"):
            ports.take_exactly(port)


def test_no_such_port() -> None:
    with HeldPorts() as ports, pytest.raises(LocalError, match="ports go from 0 to 65535"):
        ports.take_exactly(70_000)
