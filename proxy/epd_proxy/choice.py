"""Which engine serves a request. Pure: engines are given with their loads.

Encoders are chosen by rendezvous hash of the content, so that equal media find the same encoder cache; prefill (or the
engine that prefills and decodes) by rendezvous hash of the conversation's start, for its prefix cache; both with
bounded load, so that one popular image or system prompt does not overload one engine. A decoder after prefill has no
cache to meet: the less loaded of two taken at random.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, Protocol, TypeVar

LOAD_FACTOR: Final = 1.5
"""How far above the mean an engine's load may be before the next in the hash order is taken. Of 1.1, 1.25, 1.5 and 2 it
is the one near the best 99th percentile for every load of benchmarks/proxy/choice.py: 2 does as well for images and
conversations, and takes up to twice as long where half of all requests share a key."""

_MASK: Final = 0xFFFFFFFFFFFFFFFF


class Loaded(Protocol):
    """What a choice looks at."""

    @property
    def seed(self) -> int:
        """A number that differs between engines and is the same in all proxies."""

    @property
    def load(self) -> int:
        """Requests at the engine."""


T = TypeVar("T", bound=Loaded)


def score(key: int, seed: int) -> int:
    """Return the rank of an engine for a key: a 64-bit mix of both."""
    x = (key ^ seed) & _MASK
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


def bounded_rendezvous(key: int, engines: Sequence[T], factor: float = LOAD_FACTOR) -> T:
    """Return the highest ranking engine whose load stays within `factor` times the mean, the new request counted."""
    if len(engines) == 1:
        return engines[0]
    room = math.ceil(factor * (sum(engine.load for engine in engines) + 1) / len(engines))
    return max(engines, key=lambda engine: (engine.load < room, score(key, engine.seed)))


def less_loaded_of_two(engines: Sequence[T], pick: random.Random) -> T:
    """Return the less loaded of two engines taken at random."""
    if len(engines) == 1:
        return engines[0]
    first, second = pick.sample(range(len(engines)), 2)
    return engines[first] if engines[first].load <= engines[second].load else engines[second]


def content_key(name: str) -> int:
    """Return the key of a content uuid."""
    return int(name[:16], 16)


def prefix_key(start: bytes) -> int:
    """Return the key of a conversation's start."""
    return int.from_bytes(blake2b(start, digest_size=8).digest(), "big")
