"""Each topology and connector in pods: simulated engines whose answers show whether everything arrived."""

from typing import Any

import pytest

from hack.demo_cluster.deployment import Deployed
from hack.demo_cluster.installation import Installation
from hack.demo_cluster.volumes import Volumes
from hack.images.catalog import ENGINE_SIM
from tests.e2e.simulated import CLAIM, MODEL, ask, restarts, simulated
from tests.simulator.requests import chat, data_url, image, new_mark
from tests.simulator.vllm.answers import expected

pytestmark = pytest.mark.e2e

PREFILL = {"replicas": 1, "drainTimeoutSeconds": 5}
SHARED = {"volume": {"persistentVolumeClaim": {"claimName": CLAIM}}}
WIRINGS: dict[str, dict[str, Any]] = {
    "pd": {"encode": None, "transfer": None},
    "p-d": {"encode": None, "prefill": PREFILL, "transfer": {"kv": {"connector": "NixlConnector"}}},
    "e-pd": {},
    "e-p-d": {"prefill": PREFILL, "transfer": {"embeddings": SHARED, "kv": {"connector": "NixlConnector"}}},
    "eccpu": {"transfer": {"embeddings": {"connector": "ECCPUConnector", "cacheSize": "16Mi"}}},
    "mooncake": {"transfer": {"embeddings": {"connector": "ECMooncakeConnector"}}},
}


@pytest.fixture(scope="module")
def engine(installed: Installation) -> str:
    """The image of the simulator, on the nodes."""
    return installed.image(ENGINE_SIM)


@pytest.mark.smoke
@pytest.mark.parametrize("wiring", WIRINGS)
def test_answers_are_right(installed: Installation, volumes: Volumes, engine: str, namespace: str, wiring: str) -> None:
    volumes.claim(namespace, CLAIM)
    deployed = Deployed(installed.kubectl, namespace, wiring)
    deployed.apply(simulated(wiring, engine, **WIRINGS[wiring]))
    deployed.wait_ready(180)
    with deployed.reached() as url:
        for stream in (False, True):
            mark = new_mark()
            parts = [image(data_url(mark, seed=seed)) for seed in range(2)]
            body = {**chat(mark, *parts, stream=stream), "model": MODEL}
            assert ask(url, body) == expected(body)
    assert restarts(installed.kubectl, namespace) == 0
    deployed.delete("--wait=false")
