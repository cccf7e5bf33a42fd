"""Ports of this machine that stay ours from the moment they are chosen until the run has ended."""

import contextlib
import errno
import socket
from typing import Self

from epd_operator.local.errors import LocalError

ADDRESS = "127.0.0.1"
"""Nothing that a run starts can be reached from another machine."""
_TRIES = 100


class HeldPorts:
    """Ports held for the children of one run.

    Each is bound by a socket that never listens. Linux lets a second socket bind it where both allow their address to
    be reused, as vLLM, ZeroMQ and asyncio do for what they listen on, and never gives it to somebody who asks for any
    free port. So neither a second run nor another program can come between choosing a port and listening on it.
    """

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Give all ports back."""
        while self._sockets:
            self._sockets.pop().close()

    def take(self, count: int = 1) -> int:
        """Hold `count` free ports in a row and return the first. Raises LocalError where there are none."""
        for _ in range(_TRIES):
            with contextlib.suppress(OSError, OverflowError), contextlib.ExitStack() as held:
                first = held.enter_context(_bound(0))
                port = int(first.getsockname()[1])
                others = [held.enter_context(_bound(port + offset)) for offset in range(1, count)]
                held.pop_all()
                self._sockets += [first, *others]
                return port
        raise LocalError(f"found no {count} free ports in a row on {ADDRESS}; end what holds so many of them")

    def take_exactly(self, port: int) -> int:
        """Hold the port that the user chose. Raises LocalError where it is taken."""
        # A holder does not listen, so two runs that want the same port would not see each other: this name tells them.
        claim = socket.socket(socket.AF_UNIX)
        holder = socket.socket()
        try:
            claim.bind(f"\0epd-run-port-{port}")
            # Connections that have just ended keep a port busy for whoever does not allow reuse.
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            holder.bind((ADDRESS, port))
        except (OSError, OverflowError) as error:
            claim.close()
            holder.close()
            raise LocalError(f"--port {port}: {_why(error)}; choose another, or 0 for any free one") from error
        self._sockets += [claim, holder]
        return port


def _bound(port: int) -> socket.socket:
    holder = socket.socket()
    try:
        holder.bind((ADDRESS, port))
    except BaseException:
        holder.close()
        raise
    # Only after binding: until then it would join a port that another run holds.
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return holder


def _why(error: OSError | OverflowError) -> str:
    if isinstance(error, OverflowError):
        return "ports go from 0 to 65535"
    if error.errno == errno.EADDRINUSE:
        return "another program listens there, or another `epd run` holds it"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "only a privileged user may listen there"
    return error.strerror or str(error)
