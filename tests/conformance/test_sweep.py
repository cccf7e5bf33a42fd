"""A small sweep: other objects every day. `make conformance-sweep` does a large one."""

import datetime
import os
from pathlib import Path

import pytest

from epd_operator.engine.capabilities import capabilities
from epd_operator.engine.release import Release
from tests.conformance.conftest import Judges
from tests.conformance.sweep import sweep

pytestmark = pytest.mark.conformance
COUNT = 100


def seed() -> int:
    """$EPD_SWEEP_SEED, else the date: 20270131."""
    today = datetime.datetime.now(datetime.UTC).strftime("%Y%m%d")
    return int(os.environ.get("EPD_SWEEP_SEED") or today)


def test_the_operator_and_vllm_agree(judges: Judges, folders: dict[str, Path]) -> None:
    known = capabilities(Release.parse(judges.release))
    report = sweep(judges, folders, known, seed=seed(), count=COUNT)
    assert report.accepted > COUNT // 10, "too few objects are accepted for the sweep to say much"
    again = f"again with: make conformance-sweep SEED={seed()} N={COUNT}"
    assert not report.disagreements, "\n".join([again, *map(str, report.disagreements)])
