"""CPU and memory of the proxy for one request, beside nginx merely forwarding, on simulated engines.

    python benchmarks/proxy/bench.py [--runs N] [--scenarios text-c1,...] [--limit SCENARIO:MAX]...

CPU (user + system of the whole process, by requests) is what to trust on a machine that is shared; times are not. The
limits are ratios to nginx's CPU measured side by side, and the command fails when one is exceeded, or any answer is
wrong. nginx is left out, and said to be, where it is not installed. It only forwards, also the media.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.simulator.client import CHAT, Client  # noqa: E402
from tests.simulator.requests import chat, data_url, image, new_mark  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
KEY = "a-key-of-a-client"
NGINX = """
worker_processes 1; daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log crit;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_max_body_size 200m; client_body_buffer_size 8m;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  keepalive_requests 10000000; upstream decoders {{ server {server}; keepalive 256; keepalive_requests 10000000; }}
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_request_buffering off;
  server {{ listen 127.0.0.1:{port} backlog=1024; location / {{ proxy_pass http://decoders; }} }}
}}
"""


@dataclass(frozen=True)
class Scenario:
    """A load."""

    clients: int
    media: int = 0
    tokens: int = 1
    stream: bool = False
    seconds: float = 3.0
    limit: float = 0.0
    """Most CPU, as a ratio to nginx's."""


SCENARIOS = {
    "text-c1": Scenario(1, limit=1.6),
    "text-c64": Scenario(64, limit=2.2),
    "burst-c64": Scenario(64, tokens=100, stream=True, limit=1.3),
    "image-c1": Scenario(1, media=3_400_000, stream=True, seconds=6, limit=2.3),
    "image-c64": Scenario(64, media=3_400_000, stream=True, seconds=8, limit=2.0),
}


@dataclass
class Measured:
    """One run of one scenario."""

    requests: int
    cpu_ms: float
    rss_mb: float


@contextlib.contextmanager
def process(*command: str | Path, read_line: bool = False) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Run a command until the end of the block."""
    child = subprocess.Popen(
        [str(word) for word in command],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert child.stdout
        yield child, child.stdout.readline().decode() if read_line else ""
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def tree(root: int) -> list[int]:
    """The process and its children."""
    found = [root]
    for task in Path(f"/proc/{root}/task").iterdir():
        found += [pid for child in (task / "children").read_text().split() for pid in tree(int(child))]
    return found


def cpu_seconds(root: int) -> float:
    fields = (Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in tree(root))
    return sum(int(f[11]) + int(f[12]) for f in fields) / TICKS


def peak_mb(root: int) -> float:
    lines = (line for pid in tree(root) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


async def load(port: int, scenario: Scenario, seconds: float) -> int:
    """Ask in a closed loop; return the number of requests. Raises AssertionError for a wrong answer."""
    until = time.monotonic() + seconds
    media = data_url("m00000000000", scenario.media) if scenario.media else ""
    count = 0

    async def client() -> None:
        nonlocal count
        connection = await Client.connect(port)
        while time.monotonic() < until:
            mark = new_mark()
            parts = (image(media.replace("m00000000000", mark, 1)),) if media else ()
            body = json.dumps(chat(mark, *parts, tokens=scenario.tokens, stream=scenario.stream)).encode()
            connection.send("POST", CHAT, body, {"Authorization": f"Bearer {KEY}"})
            answer = await connection.response()
            assert answer.status == 200, answer.text[:200]
            assert answer.text.count(mark) == (scenario.tokens if scenario.stream else 1)
            count += 1
        await connection.close()

    await asyncio.gather(*(client() for _ in range(scenario.clients)))
    return count


def measure(pid: int, port: int, scenario: Scenario) -> Measured:
    uvloop.run(load(port, scenario, 0.3))
    Path(f"/proc/{pid}/clear_refs").write_text("5")
    before = cpu_seconds(pid)
    requests = uvloop.run(load(port, scenario, scenario.seconds))
    return Measured(requests, (cpu_seconds(pid) - before) * 1000 / requests, peak_mb(pid))


def targets(folder: Path, urls: dict[str, list[str]]) -> dict[str, tuple[list[str | Path], int]]:
    """Commands and ports of what is measured."""
    keys = folder / "keys"
    keys.write_text(KEY)
    port = free_port()
    proxy = Path(sys.executable).with_name("epd-proxy")
    ours: list[str | Path] = [proxy, "--port", str(port), "--encode", ",".join(urls["encode"])]
    ours += ["--decode", ",".join(urls["decode"]), "--api-keys-file", keys]
    out: dict[str, tuple[list[str | Path], int]] = {"epd-proxy": (ours, port)}
    nginx = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if nginx:
        port = free_port()
        conf = folder / "nginx.conf"
        conf.write_text(NGINX.format(folder=folder, server=urls["decode"][0].removeprefix("http://"), port=port))
        out["nginx"] = ([nginx, "-p", folder, "-c", conf, "-e", folder / "error.log"], port)
    return out


async def ready(port: int) -> None:
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(OSError, ConnectionError):
                client = await Client.connect(port)
                client.send("POST", CHAT, json.dumps(chat(new_mark())).encode(), {"Authorization": f"Bearer {KEY}"})
                answer = await client.response()
                await client.close()
                if answer.status == 200:
                    return
            await asyncio.sleep(0.1)


def run_all(names: list[str], runs: int) -> dict[str, dict[str, list[Measured]]]:
    results: dict[str, dict[str, list[Measured]]] = {name: {} for name in names}
    command = (sys.executable, "-m", "tests.simulator", "--encode", "1", "--decode", "1")
    with tempfile.TemporaryDirectory() as temporary, process(*command, read_line=True) as (_, line):
        for run in range(runs):
            for target, (argv, port) in targets(Path(temporary), json.loads(line)).items():
                with process(*argv) as (child, _):
                    uvloop.run(ready(port))
                    for name in names:
                        found = measure(child.pid, port, SCENARIOS[name])
                        results[name].setdefault(target, []).append(found)
                        print(f"run {run + 1} {name} {target}: {found.cpu_ms:.4f} ms", file=sys.stderr)
    return results


def report(results: dict[str, dict[str, list[Measured]]], limits: dict[str, float]) -> list[str]:
    """Print a table; return what exceeds a limit."""
    exceeded = []
    print("| scenario | target | requests | CPU ms a request | peak MB | CPU / nginx | limit |")
    print("|---|---|---|---|---|---|---|")
    for name, by_target in results.items():
        medians: dict[str, Any] = {t: statistics.median(m.cpu_ms for m in ms) for t, ms in by_target.items()}
        for target, found in by_target.items():
            ratio = medians[target] / medians["nginx"] if "nginx" in medians else None
            limit = limits.get(name) if target == "epd-proxy" else None
            rss = statistics.median(m.rss_mb for m in found)
            shown = f"{ratio:.2f}" if ratio else "-"
            requests = sum(m.requests for m in found)
            print(f"| {name} | {target} | {requests} | {medians[target]:.4f} | {rss:.0f} | {shown} | {limit or '-'} |")
            if ratio and limit and ratio > limit:
                exceeded.append(f"{name}: {ratio:.2f} times nginx's CPU, more than {limit}")
    return exceeded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--limit", action="append", default=[], metavar="SCENARIO:MAX")
    arguments = parser.parse_args()
    limits = {name: s.limit for name, s in SCENARIOS.items()}
    limits |= {name: float(most) for name, _, most in (limit.partition(":") for limit in arguments.limit)}
    results = run_all(arguments.scenarios.split(","), arguments.runs)
    exceeded = report(results, limits)
    if not any("nginx" in by_target for by_target in results.values()):
        print("\nnginx is not installed: no ratios, no limits")
    print(*exceeded, sep="\n")
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
