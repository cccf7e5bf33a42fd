"""Rules about the proxy."""

import ipaddress
import re
from collections.abc import Iterator
from itertools import pairwise

from epd_operator.api.finding import Severity
from epd_operator.api.proxy import Limits, Media, Proxy
from epd_operator.api.quantity import Quantity
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

SIZES = (
    ("media.maxSize", Quantity("32Mi")),
    ("limits.bodySize", Quantity("64Mi")),
    ("limits.inFlightSize", Quantity("1Gi")),
)
"""Each must fit into the next; the proxy's own defaults, which a test compares."""


def _sizes(wiring: Wiring) -> list[Quantity | None]:
    """The sizes as written, in the order of SIZES; None where a default holds."""
    proxy = wiring.deployment.spec.proxy or Proxy()
    media, limits = proxy.media or Media(), proxy.limits or Limits()
    return [media.max_size, limits.body_size, limits.in_flight_size]


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
    for (path, _), size in zip(SIZES, _sizes(wiring), strict=True):
        if size is not None and size.bytes < 1:
            yield Broken(
                f"spec.proxy.{path}", str(size), "no request would be taken", "remove it, or write a size such as 64Mi"
            )


@rule(
    id="proxy-sizes-out-of-order",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="One media item fits into a request body, and one body into what the proxy holds at once.",
    why="What fits one limit would always be refused by the next: with 413, or with 503 for ever.",
    source="the proxy's limits",
)
def sizes_out_of_order(wiring: Wiring) -> Iterator[Broken]:
    """A size above the next one; told where it was written, at the larger one if both were."""
    sizes = list(zip(SIZES, _sizes(wiring), strict=True))
    for (one, other), answer in zip(pairwise(sizes), ("413", "503"), strict=True):
        ((smaller, low), low_written), ((larger, high), high_written) = one, other
        low, high = low_written or low, high_written or high
        harmless = low_written is None and answer == "413"  # a body that is refused is no item that is
        if low.bytes <= high.bytes or high.bytes < 1 or harmless:
            continue
        path, value = (smaller, low) if low_written is not None else (larger, high)
        message = f"{smaller} ({low}) is above {larger} ({high}), so what it allows is always answered {answer}"
        yield Broken(f"spec.proxy.{path}", str(value), message, f"raise {larger}, or lower {smaller}")


@rule(
    id="allowed-domain-malformed",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="Allowed domains are host names, or addresses of the public internet.",
    why="No URL has such a host, or the proxy refuses each that has: media of it would never be taken.",
    source="RFC 1123; the proxy's media policy",
)
def allowed_domain_malformed(wiring: Wiring) -> Iterator[Broken]:
    """A name that no host has, or an address that is not public."""
    proxy = wiring.deployment.spec.proxy
    for index, domain in enumerate((proxy and proxy.media and proxy.media.allowed_domains) or ()):
        path, labels = f"spec.proxy.media.allowedDomains[{index}]", domain.split(".")
        if not all(_LABEL.fullmatch(label) for label in labels):
            message = "is no host name: each part between dots has 1 to 63 letters, digits and inner dashes"
            yield Broken(path, domain, message, "write it as in URLs, for example images.example.com")
        elif labels[-1].isdecimal() and not _public_address(domain):
            message = "is no address of the public internet, and the proxy takes media from those only"
            yield Broken(path, domain, message, "remove it, or name a host")


_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _public_address(text: str) -> bool:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return address.is_global and not address.is_multicast


RULES = (size_zero, sizes_out_of_order, allowed_domain_malformed)
