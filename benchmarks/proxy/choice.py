"""Which choice of engines serves real arrivals best, simulated: the proxy's defaults were chosen by it.

    python benchmarks/proxy/choice.py [--seed N]

Encoders see images that come again (a few popular, most once), in bursts; each has a cache of the last images.
Engines that prefill see conversations of several turns that share system prompts; each has a cache of prefixes. Time is
simulated: a hit is cheap, a miss is not, and one engine works on one thing at a time. The policies are the proxy's own
code where it is that, and plain ones to compare with.
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from epd_proxy.choice import bounded_rendezvous, less_loaded_of_two, prefix_key, score


@dataclass(eq=False)
class Engine:
    """A simulated engine with a cache of `room` entries."""

    seed: int
    room: int
    load: int = 0
    free_at: float = 0.0
    cache: OrderedDict[int, None] = field(default_factory=OrderedDict)
    hits: int = 0

    def serve(self, key: int, now: float, hit: float, miss: float) -> float:
        """Return when a request that comes now is done."""
        found = key in self.cache
        self.hits += found
        self.cache[key] = None
        self.cache.move_to_end(key)
        if len(self.cache) > self.room:
            self.cache.popitem(last=False)
        self.free_at = max(self.free_at, now) + (hit if found else miss)
        return self.free_at


Policy = Callable[[int, Sequence[Engine]], Engine]


def policies(seed: int) -> dict[str, Policy]:
    pick = random.Random(seed)
    turn = iter(range(1 << 60))
    out: dict[str, Policy] = {
        "round robin": lambda _, engines: engines[next(turn) % len(engines)],
        "plain hash": lambda key, engines: max(engines, key=lambda e: score(key, e.seed)),
        "power of two": lambda _, engines: less_loaded_of_two(engines, pick),
    }
    for factor in (1.1, 1.25, 1.5, 2.0):
        out[f"bounded x{factor:g}"] = lambda key, engines, f=factor: bounded_rendezvous(key, engines, f)  # type: ignore[misc]
    return out


@dataclass(frozen=True)
class Load:
    """Requests: (time, key). The cost of a hit and of a miss in seconds; engines, and entries of a cache."""

    name: str
    arrivals: list[tuple[float, int]]
    hit: float
    miss: float
    engines: int
    room: int


def bursts(rng: random.Random, seconds: float, rate: float) -> list[float]:
    """Arrival times whose rate changes between a third and three times the mean."""
    out, now = [], 0.0
    while now < seconds:
        factor, until = rng.choice([0.33, 1.0, 3.0]), now + rng.expovariate(0.5)
        while now < until:
            now += rng.expovariate(rate * factor)
            out.append(now)
    return out


def images(rng: random.Random) -> Load:
    """A tenth of the arrivals shows one of 50 popular images, Zipf; a third comes again soon; the rest is new."""
    weights = [1 / rank for rank in range(1, 51)]
    recent: list[int] = []
    arrivals = []
    for now in bursts(rng, 600, 24):
        kind = rng.random()
        if kind < 0.10:
            key = rng.choices(range(50), weights)[0]
        elif kind < 0.43 and recent:
            key = rng.choice(recent[-200:])
        else:
            key = rng.getrandbits(60)
        recent.append(key)
        arrivals.append((now, prefix_key(key.to_bytes(8, "big"))))
    return Load("images, encoders", arrivals, hit=0.01, miss=0.15, engines=4, room=400)


def conversations(rng: random.Random) -> Load:
    """Conversations of one to twelve turns, seconds apart: the key is what all turns of one share."""
    arrivals = []
    for start in bursts(rng, 600, 5):
        key, now = rng.getrandbits(60), start
        for _ in range(min(12, 1 + int(rng.expovariate(0.3)))):
            arrivals.append((now, key))
            now += rng.uniform(3, 25)
    return Load("conversations, prefill", sorted(arrivals), hit=0.03, miss=0.25, engines=4, room=150)


def hot_prompt(rng: random.Random) -> Load:
    """The same, but half of all traffic is one key: what plain hashing breaks under."""
    load = conversations(rng)
    arrivals = [(now, 42 if rng.random() < 0.5 else key) for now, key in load.arrivals]
    return Load("one hot key", arrivals, hit=0.06, miss=0.25, engines=4, room=150)


def simulate(load: Load, policy: Policy) -> tuple[float, float, float]:
    """Return the share of hits, and the median and 99th percentile of the latency in seconds."""
    engines = [Engine((n + 1) * 0x9E3779B97F4A7C15 & (2**64 - 1), load.room) for n in range(load.engines)]
    ends: list[tuple[float, int]] = []
    latencies = []
    for now, key in load.arrivals:
        while ends and ends[0][0] <= now:
            engines[heapq.heappop(ends)[1]].load -= 1
        engine = policy(key, engines)
        done = engine.serve(key, now, load.hit, load.miss)
        engine.load += 1
        heapq.heappush(ends, (done, engines.index(engine)))
        latencies.append(done - now)
    latencies.sort()
    hits = sum(e.hits for e in engines) / len(latencies)
    return hits, latencies[len(latencies) // 2], latencies[math.ceil(len(latencies) * 0.99) - 1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    seed = parser.parse_args().seed
    print("| load | choice | hits | p50 s | p99 s |\n|---|---|---|---|---|")
    for make in (images, conversations, hot_prompt):
        load = make(random.Random(seed))
        for name, policy in policies(seed).items():
            hits, median, tail = simulate(load, policy)
            print(f"| {load.name} | {name} | {hits:.1%} | {median:.3f} | {tail:.2f} |")


if __name__ == "__main__":
    main()
