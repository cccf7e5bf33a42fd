"""Prometheus metrics of the operator, in a registry of their own."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric

REGISTRY = CollectorRegistry()
ProcessCollector(registry=REGISTRY)  # CPU and memory
Reader = Callable[[], float]

RECONCILES = Histogram(
    "epd_operator_reconcile_seconds",
    "Duration of one reconcile",
    ["outcome"],
    buckets=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30),
    registry=REGISTRY,
)
ERRORS = Counter(
    "epd_operator_reconcile_errors", "Reconciles that could not do all, by reason", ["reason"], registry=REGISTRY
)
WRITES = Counter("epd_operator_writes", "Requests that wrote, by kind and verb", ["kind", "verb"], registry=REGISTRY)
FINDINGS = Counter(
    "epd_operator_findings",
    "Findings on objects whose spec was looked at, by rule",
    ["rule", "severity"],
    registry=REGISTRY,
)
ADMISSIONS = Counter("epd_operator_admissions", "Answers of the webhook", ["verdict"], registry=REGISTRY)
LEADER = Gauge("epd_operator_leader", "1 while this operator leads", registry=REGISTRY)


class QueueCollector:
    """Depth and age of a queue, asked for when they are scraped."""

    def __init__(self, depth: Reader, age: Reader) -> None:
        self._depth = depth
        self._age = age

    def collect(self) -> list[Metric]:
        """The two gauges."""
        depth = GaugeMetricFamily("epd_operator_queue_depth", "Objects that wait for a reconcile")
        depth.add_metric([], self._depth())
        age = GaugeMetricFamily("epd_operator_queue_age_seconds", "How long the first of them has waited")
        age.add_metric([], self._age())
        return [depth, age]
