import random
from collections import Counter
from dataclasses import dataclass

from epd_proxy.choice import LOAD_FACTOR, bounded_rendezvous, content_key, less_loaded_of_two, prefix_key


@dataclass
class Engine:
    seed: int
    load: int = 0


def engines(count: int) -> list[Engine]:
    return [Engine(seed * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) for seed in range(1, count + 1)]


def test_a_key_finds_the_same_engine_and_keys_are_spread_evenly() -> None:
    some = engines(5)
    keys = [content_key(f"{n * 7919:032x}"[::-1]) for n in range(5000)]
    chosen = [bounded_rendezvous(key, some).seed for key in keys]
    assert chosen == [bounded_rendezvous(key, some[::-1]).seed for key in keys]
    assert all(800 < n < 1200 for n in Counter(chosen).values())


def test_an_engine_that_leaves_moves_only_its_own_keys() -> None:
    some = engines(5)
    keys = [prefix_key(b"%d" % n) for n in range(2000)]
    before = {key: bounded_rendezvous(key, some) for key in keys}
    after = {key: bounded_rendezvous(key, some[1:]) for key in keys}
    assert all(after[key] is before[key] for key in keys if before[key] is not some[0])


def test_one_popular_key_does_not_overload_an_engine() -> None:
    some = engines(4)
    for _ in range(400):
        bounded_rendezvous(42, some).load += 1
    assert max(e.load for e in some) <= LOAD_FACTOR * 100 + 1


def test_the_less_loaded_of_two() -> None:
    pick = random.Random(1)
    some = [Engine(1, 9), Engine(2, 0)]
    assert {less_loaded_of_two(some, pick).seed for _ in range(20)} == {2}
    assert less_loaded_of_two(some[:1], pick) is some[0]
