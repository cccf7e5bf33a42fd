"""Simulated instances, each a process of its own, behind the real proxy: every topology and connector answers right."""

import itertools
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.integration.eventually import eventually
from tests.simulator.requests import chat, data_url, image, new_mark
from tests.simulator.vllm.answers import expected

ADDRESSES = itertools.count(1)
PORT = 18000 + os.getpid() % 20000
EC: dict[str, dict[str, Any]] = {
    "ECExampleConnector": {},
    "ECCPUConnector": {"ec_enable_nixl": True, "ec_cpu_bytes": 1},
    "ECMooncakeConnector": {},
}


@dataclass
class Cell:
    """Processes of one deployment, each at a loopback address of its own, as pods have."""

    directory: Path
    release: str = "0.33.0"
    stack: ExitStack = field(default_factory=ExitStack)
    processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def engine(self, ec: dict[str, Any] | None, kv: dict[str, Any] | None, **environ: str) -> str:
        """Start one; returns its base URL."""
        host = f"127.77.{os.getpid() % 250}.{next(ADDRESSES)}"
        arguments = ["sim", "--host", host, "--port", str(PORT), "--shutdown-timeout", "5"]
        for kind, config in (("ec", ec), ("kv", kv)):
            if config:
                mine = {"ec_ip": host, "ec_port": 14579} if config.get("ec_role") == "ec_consumer" else {}
                arguments += [f"--{kind}-transfer-config", json.dumps({**config, **mine})]
        hosts = {"VLLM_EC_SIDE_CHANNEL_HOST": host, "VLLM_NIXL_SIDE_CHANNEL_HOST": host}
        self._run("-m", "tests.simulator.vllm", *arguments, **hosts, EPD_SIM_START_SECONDS="0", **environ)
        return f"http://{host}:{PORT}"

    def proxy(self, ec: str, kv: str, **roles: list[str]) -> str:
        """Start the proxy before engines; returns its base URL once it serves."""
        host = f"127.77.{os.getpid() % 250}.{next(ADDRESSES)}"
        words = [f"--host={host}", f"--port={PORT}"]
        words += [f"--{role}={','.join(urls)}" for role, urls in roles.items() if urls]
        words += [f"--embeddings-connector={ec}"] * bool(ec) + [f"--kv-connector={kv}"] * bool(kv)
        self._run("-c", "from epd_proxy.main import main; main()", *words)
        url = f"http://{host}:{PORT}"
        serves(url)
        return url

    def deployment(self, ec: str, kv: str, **environ: str) -> str:
        """Start a whole topology."""
        shared = {"ec": self.directory / "ec", "kv": self.directory / "kv"}
        extra = {**EC.get(ec, {}), **({"shared_storage_path": str(shared["ec"])} if ec == "ECExampleConnector" else {})}
        ecs = {
            role: {"ec_connector": ec, "ec_role": role, "ec_connector_extra_config": extra} if ec else None
            for role in ("ec_producer", "ec_consumer")
        }
        path = {"shared_storage_path": str(shared["kv"])} if kv == "ExampleConnector" else {}
        kvs = {
            role: {"kv_connector": kv, "kv_role": role, "kv_connector_extra_config": path} if kv else None
            for role in ("kv_producer", "kv_consumer")
        }
        encode = [self.engine(ecs["ec_producer"], None, **environ)] if ec else []
        prefill = [self.engine(ecs["ec_consumer"], kvs["kv_producer"], **environ)] if kv else []
        decode = [self.engine(None if kv else ecs["ec_consumer"], kvs["kv_consumer"], **environ)]
        for url in (*encode, *prefill, *decode):
            serves(url)
        return self.proxy(ec, kv, encode=encode, prefill=prefill, decode=decode)

    def _run(self, *words: str, **environ: str) -> None:
        settings = {**os.environ, "EPD_SIM_RELEASE": self.release, **environ}
        process = subprocess.Popen([sys.executable, *words], env=settings, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)


@pytest.fixture
def cell(tmp_path: Path) -> Iterator[Callable[[str], Cell]]:
    with ExitStack() as stack:

        def make(release: str = "0.33.0") -> Cell:
            made = Cell(tmp_path, release)
            stack.enter_context(made.stack)
            return made

        yield make


def serves(url: str) -> None:
    """Wait until it does."""
    eventually(f"{url} serves", lambda: status(f"{url}/health") == 200, seconds=60)


def status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def ask(url: str, request: dict[str, Any]) -> str:
    data = json.dumps(request).encode()
    headers = {"Content-Type": "application/json"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{url}/v1/chat/completions", data, headers), timeout=30
    ) as answer:
        content = answer.read().decode()
    if not request["stream"]:
        return str(json.loads(content)["choices"][0]["message"]["content"])
    lines = [line.removeprefix("data: ") for line in content.splitlines() if line.startswith("data: {")]
    return "".join(json.loads(line)["choices"][0]["delta"]["content"] for line in lines)


@pytest.mark.parametrize(
    ("ec", "kv", "release"),
    [
        ("", "", "0.33.0"),
        ("", "NixlConnector", "0.33.0"),
        ("ECExampleConnector", "", "0.29.0"),
        ("ECExampleConnector", "", "0.33.0"),
        ("ECCPUConnector", "", "0.32.0"),
        ("ECMooncakeConnector", "", "0.33.0"),
        ("ECExampleConnector", "NixlConnector", "0.30.0"),
        ("ECCPUConnector", "NixlConnector", "0.33.0"),
        ("ECCPUConnector", "MooncakeConnector", "0.33.0"),
        ("ECExampleConnector", "ExampleConnector", "0.33.0"),
    ],
)
def test_right_answers(cell: Callable[[str], Cell], ec: str, kv: str, release: str) -> None:
    url = cell(release).deployment(ec, kv)
    for stream in (False, True):
        mark = new_mark()
        pictures = [image(data_url(mark, seed=seed)) for seed in range(2)]
        for parts in ([], pictures[:1], pictures):
            request = chat(mark, *parts, tokens=3, stream=stream)
            assert ask(url, request) == expected(request)
