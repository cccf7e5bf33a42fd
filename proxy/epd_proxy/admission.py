"""What is let in: by path, key and size, before a body is read."""

from __future__ import annotations

from typing import Final

from epd_proxy.auth import ApiKeys
from epd_proxy.buffers import SMALL
from epd_proxy.core import RETRY_AFTER, Core
from epd_proxy.errors import ProxyError
from epd_proxy.request import Kind, Request

PATHS: Final[dict[bytes, tuple[bytes, Kind]]] = {
    b"/v1/chat/completions": (b"POST", Kind.CHAT),
    b"/v1/completions": (b"POST", Kind.COMPLETIONS),
    b"/v1/responses": (b"POST", Kind.THROUGH),
    b"/v1/messages": (b"POST", Kind.THROUGH),
    b"/v1/messages/count_tokens": (b"POST", Kind.THROUGH),
    b"/v1/embeddings": (b"POST", Kind.THROUGH),
    b"/v1/score": (b"POST", Kind.THROUGH),
    b"/v1/rerank": (b"POST", Kind.THROUGH),
    b"/tokenize": (b"POST", Kind.THROUGH),
    b"/detokenize": (b"POST", Kind.THROUGH),
    b"/v1/models": (b"GET", Kind.MODELS),
    b"/health": (b"GET", Kind.HEALTH),
    b"/live": (b"GET", Kind.LIVE),
    b"/metrics": (b"GET", Kind.METRICS),
}
"""Method and kind by path. vLLM's other paths are not served: /invocations would bypass the key of an engine."""

_OPEN: Final = frozenset((Kind.HEALTH, Kind.LIVE, Kind.METRICS))
"""Kinds that need no key and no room."""

_CHALLENGE: Final = "this proxy needs an API key: Authorization: Bearer KEY"


class Admission:
    """Lets requests in and accounts for them."""

    def __init__(self, core: Core, keys: ApiKeys) -> None:
        self._core = core
        self._keys = keys
        self.draining = False
        self.in_flight = 0

    def admit(self, request: Request, length: int | None) -> Kind:
        """Return how the request is served; raises ProxyError. `length` is None while it is not known."""
        method, kind = PATHS.get(request.path) or self._unknown(request)
        if request.method != method and not (request.method == b"HEAD" and method == b"GET"):
            raise self._refused("method", ProxyError(405, f"{request.path.decode()} takes {method.decode()} only"))
        if self.draining:
            request.keep_alive = False
        if kind in _OPEN:
            return kind
        if self._keys.required:
            self._authenticate(request)
        core = self._core
        limits = core.config.limits
        if length is not None:
            if length > limits.body_size:
                raise self._refused("body-size", too_large(length, limits.body_size))
            if not core.budget.take(length):
                raise self._no_room()
            request.reserved = length
        if self.in_flight >= limits.in_flight_requests // core.share:
            core.budget.give(request.reserved)
            raise self._refused("in-flight-requests", busy("too many requests are in flight"))
        self.in_flight += 1
        request.admitted = True
        core.retries.requests += 1
        return kind

    def _unknown(self, request: Request) -> tuple[bytes, Kind]:
        path = request.path[:200].decode("latin-1")
        raise self._refused("path", ProxyError(404, f"there is no {path!r} here"))

    def _no_room(self) -> ProxyError:
        return self._refused("in-flight-size", busy("the bodies in flight fill the memory set aside for them"))

    def grow(self, request: Request, length: int) -> None:
        """Admit more of a body whose length was not announced; raises ProxyError."""
        limit = self._core.config.limits.body_size
        if length > limit:
            raise self._refused("body-size", too_large(length, limit))
        more = max(length - request.reserved, SMALL)
        if length > request.reserved:
            if not self._core.budget.take(more):
                raise self._no_room()
            request.reserved += more

    def release(self, request: Request) -> None:
        """Give back what an admitted request held."""
        request.admitted = False
        self.in_flight -= 1
        core = self._core
        core.budget.give(request.reserved)
        body, request.body = request.body, b""
        if len(body) > SMALL and isinstance(body, bytearray):
            # Later, when the frames that still look at it are gone.
            core.loop.call_soon(core.buffers.give, body)

    def _authenticate(self, request: Request) -> None:
        given = request.headers.get(b"authorization") or b"Bearer " + request.headers.get(b"x-api-key", b"")
        tenant = self._keys.tenant(given)
        if tenant is None:
            raise self._refused("key", ProxyError(401, _CHALLENGE))
        request.tenant = tenant

    def _refused(self, reason: str, error: ProxyError) -> ProxyError:
        self._core.metrics.refused[(reason,)] += 1
        return error


def too_large(size: int, limit: int, what: str = "request body") -> ProxyError:
    """Return the error for what is above a limit."""
    return ProxyError(413, f"the {what} has {size} bytes or more; at most {limit} are taken")


def busy(why: str) -> ProxyError:
    """Return the error for a client that must come back later."""
    return ProxyError(503, f"{why}; try again soon", retry_after=RETRY_AFTER)
