import socket
from dataclasses import astuple

from hack.cluster.ports import BLOCK_SIZE, Ports, free_ports, is_free


def test_clusters_at_the_same_time_share_no_port() -> None:
    with free_ports() as first, free_ports() as second:
        assert not set(astuple(first)) & set(astuple(second))


def test_a_block_has_room_for_all_ports() -> None:
    assert len(astuple(Ports.block(1))) <= BLOCK_SIZE


def test_a_port_that_a_server_has_is_not_free() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        assert not is_free("127.0.0.1", server.getsockname()[1])


def test_a_block_with_a_server_in_it_is_passed_over() -> None:
    with free_ports() as before:
        pass
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", before.scheduler))
        server.listen()
        with free_ports() as after:
            assert before.scheduler not in astuple(after)
