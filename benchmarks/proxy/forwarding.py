"""What decode is spared by metadata in place of media: real vLLM, E+PD, a tiny model, pictures of 1024 x 1024.

    python -m benchmarks.proxy.forwarding [--pictures N]

One deployment, and two proxies before it, `mediaForwarding: Metadata` and `Raw`, that take turns with pictures which
are new to them. Decode's service time is that of the whole request less that of the encoder, as the proxies measure
both. The answer has one token, so that what remains is how decode receives, decodes, transforms and prefills. Exits
with 1 unless Metadata is quicker and smaller.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from dataclasses import dataclass

from hack import engine_env, models
from hack.chat import ask, body, metric
from hack.demo import FILE, raw_proxy
from hack.local_run import LocalRun
from hack.pictures import png

SIDE = 1024


@dataclass(frozen=True)
class Cost:
    """What one request cost: seconds and bytes."""

    decode: float
    encode: float
    sent: float


def totals(url: str) -> Cost:
    """What a proxy has measured so far."""
    whole = metric(url, "epd_proxy_request_seconds_sum", path="chat")
    encode = metric(url, "epd_proxy_stage_seconds_sum", stage="encode")
    return Cost(whole - encode, encode, metric(url, "epd_proxy_upstream_request_bytes_total", role="decode"))


def one(url: str, model: str, seed: int) -> Cost:
    """Ask about a picture of its own."""
    before = totals(url)
    ask(url, body(model, "What is this?", [png(SIDE, SIDE, seed)], tokens=1))
    after = totals(url)
    return Cost(after.decode - before.decode, after.encode - before.encode, after.sent - before.sent)


def ask_in_turn(urls: dict[str, str], model: str, count: int) -> dict[str, list[Cost]]:
    """Ask each proxy about so many pictures, after two that warm up."""
    found: dict[str, list[Cost]] = {name: [] for name in urls}
    for number in range(-2, count):
        for place, (name, url) in enumerate(urls.items()):
            cost = one(url, model, 1000 + 2 * number + place)
            if number >= 0:
                found[name].append(cost)
    return found


def report(found: dict[str, list[Cost]]) -> bool:
    """Print medians; whether Metadata is quicker and smaller."""
    print(f"\n| mediaForwarding | decode's service time, ms | encode, ms | bytes sent to decode |\n{'|---' * 4}|")
    medians = {}
    for name, costs in found.items():
        decode, encode, sent = (
            statistics.median(getattr(cost, part) for cost in costs) for part in ("decode", "encode", "sent")
        )
        medians[name] = Cost(decode, encode, sent)
        print(f"| {name} | {decode * 1000:.1f} | {encode * 1000:.1f} | {sent:,.0f} |")
    less = {part: getattr(medians["Raw"], part) / getattr(medians["Metadata"], part) for part in ("decode", "sent")}
    times = f"{less['decode']:.1f} times less time, {less['sent']:,.0f} times fewer bytes"
    print(f"\n{times}; medians of {len(found['Raw'])} pictures")
    return all(ratio > 1 for ratio in less.values())


def main() -> int:
    """Start everything, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=20, help="for each of the two")
    count = parser.parse_args().pictures
    engine = engine_env.ensure()
    with LocalRun(FILE, models.ensure(engine), engine) as run:
        urls = {"Metadata": run.wait_until_served()}
        model = run.wait_for("planned")["model"]
        with raw_proxy(run) as urls["Raw"]:
            found = ask_in_turn(urls, model, count)
    return 0 if report(found) else 1


if __name__ == "__main__":
    sys.exit(main())
