"""What rules say of vLLM, asked of every release."""

from pathlib import Path

import pytest

from epd_operator.engine.capabilities import capabilities
from epd_operator.engine.release import Release
from tests.conformance.conftest import Judges
from tests.conformance.proofs import PROVED, disproved

pytestmark = pytest.mark.conformance


def test_vllm_does_what_the_rules_say(judges: Judges, folders: dict[str, Path]) -> None:
    release = Release.parse(capabilities(Release.parse(judges.release)).version)
    rules = [rule for rule in PROVED if rule.holds_for(release)]
    assert len(rules) > 20
    assert [words for rule in rules for words in disproved(rule, release, judges, folders)] == []
