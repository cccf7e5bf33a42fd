"""What to say of a connector that a release does not know."""

import difflib
from collections.abc import Iterable
from typing import NamedTuple

from epd_operator.engine.capabilities import Capabilities, capabilities, known_minors
from epd_operator.engine.release import Release
from epd_operator.engine.wiring import Wiring


class Words(NamedTuple):
    """The message and remedy of a finding."""

    message: str
    remedy: str


def unknown_connector(wiring: Wiring, name: str, purpose: str, known: Iterable[str]) -> Words:
    """Why `name` is wrong and what to write; `purpose` is embeddings or KV."""
    near = nearest_connector(name, known)
    instead = f"use {near}" if near else f"use one of {', '.join(sorted(known))}"
    message = f"vLLM {wiring.release} has no such {purpose} connector (the engine ends with an error)"
    if near is not None and _stem(near) == _stem(name):
        return Words(message, instead)
    releases = [minor for minor in known_minors() if name in _connectors(capabilities(Release(*minor)), purpose)]
    if releases:
        first = f"{releases[0][0]}.{releases[0][1]}"
        message = f"vLLM {wiring.release} does not have it, {first} was the first (the engine ends with an error)"
        return Words(message, f"use vLLM {first} or later, or one of {', '.join(sorted(known))}")
    other = "KV" if purpose == "embeddings" else "embeddings"
    if name in _connectors(wiring.capabilities, other):
        return Words(f"is a connector for {other}, and this is for {purpose}", f"use one of {', '.join(sorted(known))}")
    return Words(message, instead)


def nearest_connector(name: str, known: Iterable[str]) -> str | None:
    """The connector most like `name`, whatever its case; the ending that all share says nothing."""
    stems = {_stem(connector): connector for connector in known}
    close = difflib.get_close_matches(_stem(name), stems, n=1, cutoff=0.7)
    return stems[close[0]] if close else None


def _stem(name: str) -> str:
    return name.lower().replace("_", "").removesuffix("v1").removesuffix("connector")


def _connectors(known: Capabilities, purpose: str) -> Iterable[str]:
    return known.ec_connectors if purpose == "embeddings" else known.kv_connectors
