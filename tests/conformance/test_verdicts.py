"""Every known verdict, asked again."""

from pathlib import Path

import pytest

from tests.conformance.conftest import Judges
from tests.conformance.verdicts import CASES, RELEASES, Case

pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("judges", RELEASES, indirect=True, scope="session")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_vllm_still_says_so(judges: Judges, folders: dict[str, Path], case: Case) -> None:
    verdict = judges["cuda"].ask([str(folders[case.model]), *case.args], case.env)
    assert verdict.accepted == (judges.release in case.accepted), verdict
    refused = [release for release in RELEASES if release not in case.accepted]
    if refused and judges.release == refused[-1]:
        assert case.says in verdict.error
