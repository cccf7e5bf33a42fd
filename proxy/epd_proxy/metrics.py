"""Counts of everything, as plain numbers on the hot path and Prometheus text when somebody asks.

A snapshot is JSON, so that the processes that share a port can be added up.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

Labels = tuple[str | int, ...]

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: its name without the prefix, what it is, the names of its labels."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]


class Counts(defaultdict[Labels, float]):
    """Values of a counter or gauge by label values."""

    def __init__(self, family: Family) -> None:
        super().__init__(float)
        self.family = family


class Histogram:
    """Observations of seconds by label values."""

    __slots__ = ("family", "series")

    def __init__(self, family: Family) -> None:
        self.family = family
        self.series: dict[Labels, list[float]] = {}

    def observe(self, labels: Labels, value: float) -> None:
        """Count a value; the last two numbers of a series are those above all bounds, and the sum."""
        series = self.series.get(labels)
        if series is None:
            series = self.series[labels] = [0.0] * (len(SECONDS) + 2)
        series[bisect_left(SECONDS, value)] += 1
        series[-1] += value


class Metrics:
    """All metrics of one process."""

    def __init__(self) -> None:
        self._families: list[Counts | Histogram] = []
        self.requests = self._counter("requests", "Answered requests by path and status.", "path", "status")
        self.request_seconds = self._histogram("request_seconds", "From the head to the end of the answer.", "path")
        self.first_byte_seconds = self._histogram("first_byte_seconds", "From the head to the answer's head.", "path")
        self.stage_seconds = self._histogram("stage_seconds", "Time of one stage of a request.", "stage")
        self.upstream_requests = self._counter(
            "upstream_requests",
            "Requests sent to engines by outcome: a status or why there was none.",
            "role",
            "outcome",
        )
        self.upstream_bytes = self._counter("upstream_request_bytes", "Bytes of bodies sent to engines.", "role")
        self.media_items = self._counter(
            "media_items", "Items by what the consumer was sent, and why raw.", "outcome", "reason"
        )
        self.coalesced = self._counter("coalesced_items", "Items that joined an encoding in flight.")
        self.retries = self._counter("retries", "Second tries by stage and reason.", "stage", "reason")
        self.retries_denied = self._counter("retries_denied", "Second tries that the budget did not allow.", "stage")
        self.ejections = self._counter("ejections", "Engines taken out of use by reason.", "role", "reason")
        self.cancelled = self._counter("cancelled", "Requests whose client left, by the stage they were in.", "stage")
        self.orphaned_prefills = self._counter(
            "orphaned_prefills", "Prefills whose KV blocks no decoder fetched; vLLM frees them after a time."
        )
        self.broken_streams = self._counter("broken_streams", "Answers that ended early because the engine did.")
        self.refused = self._counter("refused", "Requests refused before an engine was asked, by reason.", "reason")
        self.in_flight = self._gauge("in_flight_requests", "Requests being served.")
        self.in_flight_bytes = self._gauge("in_flight_bytes", "Bytes of the request bodies held.")
        self.connections = self._gauge("client_connections", "Open connections of clients.")
        self.engines = self._gauge("engines", "Engines by state.", "role", "state")
        self.engine_in_flight = self._gauge("engine_in_flight_requests", "Requests at an engine.", "role", "engine")
        self.encoder_waiting = self._gauge("encoder_waiting_requests", "Requests waiting for a place at an encoder.")

    def snapshot(self) -> bytes:
        """Return all values as JSON."""
        return json.dumps([_values(f) for f in self._families]).encode()

    def text(self, others: Iterable[bytes] = ()) -> bytes:
        """Return Prometheus text of this process and the snapshots of others, added up."""
        from prometheus_client import CollectorRegistry, generate_latest

        merged = [dict(_values(f)) for f in self._families]
        for other in others:
            for mine, theirs in zip(merged, json.loads(other), strict=True):
                for labels, values in theirs:
                    known = mine.get(tuple(labels))
                    mine[tuple(labels)] = (
                        values if known is None else [a + b for a, b in zip(known, values, strict=True)]
                    )
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Collector([f.family for f in self._families], merged))
        return bytes(generate_latest(registry))

    def _counter(self, name: str, about: str, *labels: str) -> Counts:
        return self._add(Counts(Family(name, "counter", about, labels)))

    def _gauge(self, name: str, about: str, *labels: str) -> Counts:
        return self._add(Counts(Family(name, "gauge", about, labels)))

    def _histogram(self, name: str, about: str, *labels: str) -> Histogram:
        histogram = Histogram(Family(name, "histogram", about, labels))
        self._families.append(histogram)
        return histogram

    def _add(self, counts: Counts) -> Counts:
        self._families.append(counts)
        return counts


def _values(metric: Counts | Histogram) -> list[tuple[Labels, list[float]]]:
    if isinstance(metric, Histogram):
        return list(metric.series.items())
    return [(labels, [value]) for labels, value in metric.items()]


class _Collector:
    """Hands merged values to prometheus_client."""

    def __init__(self, families: list[Family], values: list[dict[Labels, list[float]]]) -> None:
        self._families = families
        self._values = values

    def collect(self) -> Iterator[Any]:
        """Yield every family with its samples."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

        for family, values in zip(self._families, self._values, strict=True):
            name = f"epd_proxy_{family.name}"
            if family.kind == "histogram":
                histogram = HistogramMetricFamily(name, family.help, labels=family.labels)
                for labels, series in values.items():
                    histogram.add_metric(list(map(str, labels)), _buckets(series), series[-1])
                yield histogram
                continue
            kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            numbers = kind(name, family.help, labels=family.labels)
            for labels, series in values.items():
                numbers.add_metric(list(map(str, labels)), series[0])
            yield numbers


def _buckets(series: list[float]) -> list[tuple[str, float]]:
    total = 0.0
    out = []
    for bound, number in zip((*map(str, SECONDS), "+Inf"), series, strict=False):
        total += number
        out.append((bound, total))
    return out
