"""Engines, grouped by revision: only engines of one revision may serve one request."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Final

from epd_proxy.config import Role
from epd_proxy.pool import EnginePool
from epd_proxy.wire import Wire, minor_of, wire_for

MOONCAKE_PUSH_PORT: Final = 14579
"""Default `ec_port` of an ECMooncakeConnector consumer's first rank; each data-parallel rank has its own, with as many
ports as it has tensor-parallel ranks (0.33 ec_connector/mooncake/config.py)."""

MOONCAKE_BOOTSTRAP_PORT: Final = 8998
"""Default VLLM_MOONCAKE_BOOTSTRAP_PORT of a MooncakeConnector prefill (0.33 envs.py)."""

_serial: Final = count(1)


class State(Enum):
    """Whether an engine is used."""

    NEW = "new"
    """Version and served model are not known yet."""
    UP = "up"
    DOWN = "down"
    """Ejected, or it never answered."""
    REFUSED = "refused"
    """It answers, but another version or model."""


@dataclass(slots=True, eq=False)
class Endpoint:
    """One engine."""

    url: str
    host: str
    port: int
    role: Role
    pool: EnginePool
    revision: str
    announced: str = ""
    """The version that discovery says, empty when it says none."""
    version: str = ""
    """The version that the engine says, empty while it was not asked."""
    embeddings_connector: str = ""
    kv_connector: str = ""
    data_parallel: int = 1
    tensor_parallel: int = 1
    bootstrap_port: int = MOONCAKE_BOOTSTRAP_PORT
    state: State = State.NEW
    reason: str = "not asked yet"
    models: tuple[str, ...] = ()
    bootstrap_ids: dict[int, str] = field(default_factory=dict)
    """Mooncake engine ids by data-parallel rank, of a prefill engine."""
    next_rank: int = 0
    serial: int = field(default_factory=lambda: next(_serial))
    seed: int = 0
    labels: tuple[str] = ("",)
    ok_labels: tuple[str, str] = ("", "200")
    heads: dict[bytes, bytes] = field(default_factory=dict)
    """Request heads by path, made once."""

    def __post_init__(self) -> None:
        digest = 0xCBF29CE484222325
        for byte in self.url.encode():
            digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        self.seed = digest
        self.labels = (str(self.role),)
        self.ok_labels = (str(self.role), "200")

    @property
    def load(self) -> int:
        """Requests at the engine."""
        return self.pool.in_flight

    @property
    def minor(self) -> str:
        """The minor release, empty while it is not known."""
        return minor_of(self.version) if self.version else ""


@dataclass(slots=True, eq=False)
class Revision:
    """Engines that may work together."""

    name: str
    endpoints: list[Endpoint] = field(default_factory=list)
    roles: frozenset[Role] = frozenset()
    """Roles that exist in it, whether or not an engine of them is up."""
    minor: str = ""
    usable: dict[Role, tuple[Endpoint, ...]] = field(default_factory=dict)
    wire: Wire | None = None
    begun: bool = False
    """It was complete, or its encoders are scaled to none. Before that a known encoder is awaited for text too, so that
    who has waited for the proxy may send media."""

    @property
    def consumer(self) -> Role:
        """The role that takes the embeddings."""
        return Role.PREFILL if Role.PREFILL in self.roles else Role.DECODE

    @property
    def complete(self) -> bool:
        """Whether each of its roles has an engine that is up."""
        return self._has(self.roles)

    @property
    def text_only(self) -> bool:
        """Whether it lacks an encoder that is up, and nothing else, and is not still starting."""
        return self.begun and not self.complete and self._has(self.roles - {Role.ENCODE})

    def _has(self, roles: frozenset[Role]) -> bool:
        return Role.DECODE in roles and all(self.usable.get(role) for role in roles)

    def refresh(self) -> None:
        """Derive what is usable from the states of the engines."""
        up = [e for e in self.endpoints if e.state is State.UP]
        if up and self.minor not in {e.minor for e in up}:
            self.minor = up[0].minor
            self.wire = wire_for(self.minor)
        self.usable = {role: tuple(e for e in up if e.role is role) for role in Role}
        encoders = any(e.role is Role.ENCODE for e in self.endpoints)
        self.begun = self.begun or self._has(self.roles if encoders else self.roles - {Role.ENCODE})


class Fleet:
    """All engines that the proxy knows."""

    def __init__(self, required: Iterable[Role] = ()) -> None:
        self.required = frozenset(required)
        self.revisions: dict[str, Revision] = {}
        self.serving: tuple[Revision, ...] = ()
        """Complete revisions that may get new requests; while there is none, those that can serve text."""
        self.on_change: Callable[[], None] | None = None
        self._closed: frozenset[str] = frozenset()
        self._weights: list[float] = []
        """Of each that serves: what it can carry of all that can be carried; the scarcest role decides."""
        self._was_ready = False
        self._pick = random.Random()  # noqa: S311  spreads load, keeps no secret

    @property
    def ready(self) -> bool:
        """Whether a request of text can be served; at first only by a revision in which all required roles exist."""
        if not self.serving:
            return False
        if not self._was_ready:
            self._was_ready = any(self.required <= revision.roles for revision in self.serving)
        return self._was_ready

    def endpoints(self) -> Iterable[Endpoint]:
        """All engines of all revisions."""
        return (endpoint for revision in self.revisions.values() for endpoint in revision.endpoints)

    def add(self, endpoint: Endpoint) -> None:
        """Take an engine in; it is used once its state is UP."""
        revision = self.revisions.setdefault(endpoint.revision, Revision(endpoint.revision))
        revision.endpoints.append(endpoint)
        revision.roles |= {endpoint.role}
        self.refresh()

    def remove(self, endpoint: Endpoint) -> None:
        """Forget an engine; its requests in flight go on."""
        revision = self.revisions[endpoint.revision]
        revision.endpoints.remove(endpoint)
        endpoint.pool.close()
        self.refresh()

    def set_roles(self, revision: str, roles: Iterable[Role]) -> None:
        """Say which roles a revision has; none: forget it."""
        known = frozenset(roles)
        if known:
            self.revisions.setdefault(revision, Revision(revision)).roles = known
        elif revision in self.revisions and not self.revisions[revision].endpoints:
            del self.revisions[revision]
        self.refresh()

    def close(self, revisions: Iterable[str]) -> None:
        """Say which revisions get no new requests; what they have begun goes on."""
        self._closed = frozenset(revisions)
        self.refresh()

    def refresh(self) -> None:
        """Derive what serves, after any change of a state."""
        for revision in self.revisions.values():
            revision.refresh()
        open_ = [r for r in self.revisions.values() if r.name not in self._closed]
        self.serving = tuple(r for r in open_ if r.complete) or tuple(r for r in open_ if r.text_only)
        up = {role: sum(len(r.usable[role]) for r in self.serving) for role in Role}
        self._weights = [min(len(r.usable[role]) / up[role] for role in r.roles if up[role]) for r in self.serving]
        if self.on_change:
            self.on_change()

    def pick(self) -> Revision | None:
        """Return a revision that serves, in proportion to what each can carry."""
        serving = self.serving
        if len(serving) == 1:
            return serving[0]
        if not serving:
            return None
        return self._pick.choices(serving, self._weights)[0]

    def status_json(self, *, ready: bool) -> bytes:
        """Return what /health shows: each engine with its state and the reason."""
        engines = [
            {"role": e.role, "url": e.url, "revision": e.revision, "state": e.state.value, "reason": e.reason}
            for e in self.endpoints()
        ]
        return json.dumps({"ready": ready, "engines": engines}).encode()
