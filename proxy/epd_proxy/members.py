"""Engines joining and leaving: from the command line, or as a discovery finds them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from epd_proxy.config import Role
from epd_proxy.core import Core
from epd_proxy.endpoints import MOONCAKE_BOOTSTRAP_PORT, Endpoint, State
from epd_proxy.health import Prober
from epd_proxy.pool import EnginePool

STATIC = "static"
"""The revision of engines that were named on the command line."""


@dataclass(frozen=True, slots=True)
class Member:
    """What is known about an engine before it is asked."""

    role: Role
    host: str
    port: int
    revision: str = STATIC
    version: str = ""
    embeddings_connector: str = ""
    kv_connector: str = ""
    data_parallel: int = 1
    tensor_parallel: int = 1
    bootstrap_port: int = MOONCAKE_BOOTSTRAP_PORT
    uid: str = ""
    """Of the pod, so that one that took over an address is asked anew."""


class BadUrlError(ValueError):
    """An engine's URL can't be used; the message says why."""


def parse_url(role: Role, url: str) -> Member:
    """Return the engine at a base URL such as http://10.0.0.1:8000; raises BadUrlError."""
    try:
        parts = urlsplit(url.strip().rstrip("/"))
        port = parts.port or 80
    except ValueError as error:
        raise BadUrlError(f"{url!r}: {error}") from None
    if parts.scheme != "http" or not parts.hostname or parts.path or parts.query or "@" in parts.netloc:
        raise BadUrlError(f"{url!r} is not a base URL such as http://10.0.0.1:8000")
    return Member(role, parts.hostname, port)


class Members:
    """Keeps the fleet in step with a set of members."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._known: dict[Member, tuple[Endpoint, Prober]] = {}
        self._leaving: list[EnginePool] = []

    def set(self, members: Iterable[Member]) -> None:
        """Make these the members: new ones join, missing ones leave."""
        wanted = dict.fromkeys(members)
        for member in [m for m in self._known if m not in wanted]:
            endpoint, prober = self._known.pop(member)
            prober.stop()
            endpoint.state = State.DOWN
            self._core.fleet.remove(endpoint)
            self._core.forget(endpoint)
            self._leaving.append(endpoint.pool)
        for member in wanted:
            if member not in self._known:
                self._known[member] = self._join(member)

    def sweep(self) -> None:
        """Let every pool look after its connections. Called about once a second."""
        for endpoint, prober in self._known.values():
            endpoint.pool.sweep()
            prober.sweep()
        for pool in self._leaving:
            pool.sweep()
        self._leaving = [pool for pool in self._leaving if pool.busy]

    def close(self) -> None:
        """Stop asking, and close what is free."""
        for endpoint, prober in self._known.values():
            prober.stop()
            endpoint.pool.close()

    def _join(self, member: Member) -> tuple[Endpoint, Prober]:
        core = self._core
        host = f"[{member.host}]" if ":" in member.host else member.host
        endpoint = Endpoint(
            url=f"http://{host}:{member.port}",
            host=member.host,
            port=member.port,
            role=member.role,
            pool=EnginePool(member.host, member.port, member.role, core.pool_times),
            revision=member.revision,
            announced=member.version,
            embeddings_connector=member.embeddings_connector,
            kv_connector=member.kv_connector,
            data_parallel=member.data_parallel,
            tensor_parallel=member.tensor_parallel,
            bootstrap_port=member.bootstrap_port,
        )
        core.fleet.add(endpoint)
        return endpoint, Prober(core, endpoint)
