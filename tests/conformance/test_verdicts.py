"""Every known verdict, asked again."""

from pathlib import Path

import pytest

from tests.conformance.oracle import Oracle
from tests.conformance.verdicts import CASES, RELEASES, Case

pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("judge", [f"{release}-cuda" for release in RELEASES], indirect=True, scope="session")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_vllm_still_says_so(judge: Oracle, folders: dict[str, Path], case: Case) -> None:
    verdict = judge.ask([str(folders[case.model]), *case.args], case.env)
    assert verdict.accepted == (judge.release in case.accepted), verdict
    refused = [release for release in RELEASES if release not in case.accepted]
    if refused and judge.release == refused[-1]:
        assert case.says in verdict.error
