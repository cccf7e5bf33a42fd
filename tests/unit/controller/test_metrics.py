"""The page says what is there."""

import re
from pathlib import Path

from epd_operator.controller.metrics import REGISTRY, QueueCollector

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_every_metric_is_on_the_page_and_no_other() -> None:
    families = [*REGISTRY.collect(), *QueueCollector(lambda: 1.0, lambda: 2.0).collect()]
    names = {f"{each.name}_total" if each.type == "counter" else each.name for each in families}
    assert {name for name in names if name.startswith("process_")}
    own = {name for name in names if not name.startswith("process_")}
    assert set(re.findall(r"^\| `(epd_operator_\w+)`", PAGE.read_text(), re.MULTILINE)) == own


def test_the_queue_is_asked_when_it_is_scraped() -> None:
    depth, age = QueueCollector(lambda: 3.0, lambda: 1.5).collect()
    assert [sample.value for family in (depth, age) for sample in family.samples] == [3.0, 1.5]
