"""The wires: one adapter for each set of vLLM minors that speak alike, chosen per revision."""

from __future__ import annotations

import re
from typing import Final

from epd_proxy.wire.base import Encoded, Feature, Wire, WireError
from epd_proxy.wire.v0_24 import Wire024
from epd_proxy.wire.v0_28 import Wire028
from epd_proxy.wire.v0_29 import Wire029
from epd_proxy.wire.v0_30 import Wire030
from epd_proxy.wire.v0_31 import Wire031
from epd_proxy.wire.v0_33 import Wire033

__all__ = ["WIRES", "Encoded", "Feature", "UnknownReleaseError", "Wire", "WireError", "minor_of", "wire_for"]

WIRES: Final[dict[str, Wire]] = {
    **dict.fromkeys(("0.24", "0.25", "0.26", "0.27"), Wire024()),
    "0.28": Wire028(),
    "0.29": Wire029(),
    "0.30": Wire030(),
    **dict.fromkeys(("0.31", "0.32"), Wire031()),
    "0.33": Wire033(),
}
"""The adapter by minor release."""

_VERSION: Final = re.compile(r"v?(\d+\.\d+)(?:[.+-].*)?\Z")


class UnknownReleaseError(Exception):
    """The proxy does not know the wire of a release."""


def minor_of(version: str) -> str:
    """Return "0.33" for "0.33.0", "v0.33.1+cpu" or "0.33.0.dev5"; raises UnknownReleaseError."""
    found = _VERSION.match(version.strip())
    if not found:
        raise UnknownReleaseError(f"{version[:40]!r} is no vLLM version")
    return found[1]


def wire_for(version: str) -> Wire:
    """Return the adapter of a release; raises UnknownReleaseError."""
    minor = minor_of(version)
    if minor not in WIRES:
        raise UnknownReleaseError(f"vLLM {version[:40]} is not known to this proxy, which knows {', '.join(WIRES)}")
    return WIRES[minor]
