"""A deployment under load loses a pod; `make faults` has the rest."""

import pytest

from hack.cluster.provider import Local
from hack.demo_cluster.installation import Installation
from tests.e2e.faults.faults import SMOKE
from tests.e2e.faults.run import deployed, suffer

pytestmark = [pytest.mark.e2e, pytest.mark.smoke]

IN_FLIGHT = 10


def test_a_killed_decode_takes_only_its_own_requests_along(installed: Installation, namespace: str) -> None:
    if not isinstance(installed.provider, Local):
        pytest.skip("processes are killed on the local cluster only")
    with deployed(installed, namespace) as broken:
        result = suffer(installed, broken, SMOKE, IN_FLIGHT)
    assert not result.complaints
    assert result.sent > IN_FLIGHT
