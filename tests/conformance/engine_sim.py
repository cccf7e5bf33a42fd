"""The simulator of images/engine-sim as processes: one encoder and one instance that consumes its embeddings."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from epd_operator.local.ports import ADDRESS, HeldPorts
from hack.cluster.health import answers
from hack.engine_env import VLLM_VERSION
from hack.waiting import until
from tests.conformance.shapes import Engines

ROLES = {"encode": "ec_producer", "decode": "ec_consumer"}
SECONDS = 60
SPOKEN = (
    "encode",
    "encode three, two equal",
    "encode for another model",
    "decode",
    "decode as a stream",
    "decode for another model",
    "decode with a wrong key",
    "no such path",
    "messages that are a number",
    "a body that is a list",
    "/v1/models",
    "/version",
    "/health",
)
"""Of the walk through real engines, what this simulator speaks."""
COUNTED = ("vllm:request_success_total", "vllm:num_requests_running")
"""Of vLLM's metrics those that it has."""


@contextmanager
def engine_sim(model: Path, name: str, key: str, directory: Path) -> Iterator[Engines]:
    """Both, serving. `directory`: for embeddings."""
    with ExitStack() as stack:
        ports = stack.enter_context(HeldPorts())
        urls = {}
        for role, ec_role in ROLES.items():
            port = ports.take()
            extra = {"shared_storage_path": str(directory)}
            transfer = {"ec_connector": "ECExampleConnector", "ec_role": ec_role, "ec_connector_extra_config": extra}
            words = ["--served-model-name", name, "--ec-transfer-config", json.dumps(transfer)]
            process = start([str(model), *words, "--host", ADDRESS, "--port", str(port)], VLLM_API_KEY=key)
            stack.callback(process.communicate)
            stack.callback(process.terminate)
            urls[role] = f"http://{ADDRESS}:{port}"
            assert until(lambda: _serves(urls[role]) if process.poll() is None else None, SECONDS), role  # noqa: B023
        yield Engines(urls, name, key)


def start(words: list[str], **environment: str) -> subprocess.Popen[str]:
    """Start `vllm serve` with these words; what it says is in its standard error."""
    settings = {"EPD_SIM_RELEASE": VLLM_VERSION, "EPD_SIM_START_SECONDS": "0", **environment}
    command = [sys.executable, "-m", "tests.simulator.vllm", *words]
    root = Path(__file__).parents[2]
    return subprocess.Popen(command, cwd=root, env={**os.environ, **settings}, stderr=subprocess.PIPE, text=True)


def _serves(url: str) -> bool:
    try:
        return answers(f"{url}/health")
    except OSError:
        return False
