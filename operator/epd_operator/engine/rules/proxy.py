"""Rules about the proxy."""

from collections.abc import Iterator

from epd_operator.api.finding import Severity
from epd_operator.api.proxy import DEFAULT_BODY_SIZE, DEFAULT_IN_FLIGHT_SIZE, DEFAULT_MAX_SIZE
from epd_operator.api.quantity import Quantity
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

_MAX_SIZE = "spec.proxy.media.maxSize"
_BODY_SIZE = "spec.proxy.limits.bodySize"
_IN_FLIGHT_SIZE = "spec.proxy.limits.inFlightSize"


def _sizes(wiring: Wiring) -> dict[str, Quantity | None]:
    """The proxy's sizes as written, by path; None where a default holds."""
    proxy = wiring.deployment.spec.proxy
    media, limits = (proxy.media, proxy.limits) if proxy else (None, None)
    return {
        _MAX_SIZE: media.max_size if media else None,
        _BODY_SIZE: limits.body_size if limits else None,
        _IN_FLIGHT_SIZE: limits.in_flight_size if limits else None,
    }


@rule(
    id="proxy-size-zero",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="Sizes of the proxy are above 0.",
    why="The proxy would refuse every request, so it refuses the configuration.",
    source="the proxy's configuration",
)
def size_zero(wiring: Wiring) -> Iterator[Broken]:
    """A size of nothing."""
    for path, size in _sizes(wiring).items():
        if size is not None and size.bytes < 1:
            yield Broken(path, str(size), "no request would be taken", "remove it, or write a size such as 64Mi")


@rule(
    id="proxy-sizes-out-of-order",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="One media item fits into a request body, and one body into what the proxy holds at once.",
    why="What fits one limit would always be refused by the next: with 413, or with 503 for ever.",
    source="the proxy's limits",
)
def sizes_out_of_order(wiring: Wiring) -> Iterator[Broken]:
    """A size above the next one; told where it was written, at the larger one if both were."""
    sizes = _sizes(wiring)
    defaults = {_MAX_SIZE: DEFAULT_MAX_SIZE, _BODY_SIZE: DEFAULT_BODY_SIZE, _IN_FLIGHT_SIZE: DEFAULT_IN_FLIGHT_SIZE}
    for smaller, larger, answer in ((_MAX_SIZE, _BODY_SIZE, "413"), (_BODY_SIZE, _IN_FLIGHT_SIZE, "503")):
        low, high = sizes[smaller] or defaults[smaller], sizes[larger] or defaults[larger]
        if low.bytes <= high.bytes or high.bytes < 1:
            continue
        path, value = (smaller, low) if sizes[smaller] is not None else (larger, high)
        relation = f"{_short(smaller)} ({low}) is above {_short(larger)} ({high})"
        message = f"{relation}, so what it allows is always answered {answer}"
        yield Broken(path, str(value), message, f"raise {_short(larger)}, or lower {_short(smaller)}")


def _short(path: str) -> str:
    return path.removeprefix("spec.proxy.")


RULES = (size_zero, sizes_out_of_order)
