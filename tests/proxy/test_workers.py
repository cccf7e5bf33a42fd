"""Several processes that share a port."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from epd_proxy.config import ProxyConfig
from epd_proxy.core import Core
from tests.proxy import programs
from tests.proxy.programs import Program
from tests.simulator.client import CHAT, Client, post, request
from tests.simulator.requests import chat, new_mark

WORKERS = 2
REQUESTS = 8


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Program]:
    config = {"limits": {"inFlightRequests": REQUESTS}}
    with (
        programs.engines(decode=1) as urls,
        programs.proxy(tmp_path, urls, config, "--workers", str(WORKERS)) as found,
    ):
        yield found


async def answered_by(program: Program) -> str:
    """Ask once; which process answered, by its part of the request id. Waits until the proxy knows its engine."""
    while True:
        mark = new_mark()
        answer = await post(program.port, chat(mark))
        if answer.status == 200:
            assert mark in answer.text
            return answer.headers["x-request-id"].split("-")[1]
        assert answer.status == 503
        await asyncio.sleep(0.05)


async def until_all_answer(program: Program) -> set[str]:
    """Ask until as many processes as there are have answered."""
    seen: set[str] = set()
    async with asyncio.timeout(30):
        while len(seen) < WORKERS:
            seen.add(await answered_by(program))
    return seen


async def test_all_processes_serve_and_one_that_dies_is_replaced(shared: Program) -> None:
    before = await until_all_answer(shared)
    killed = shared.children[0]
    os.kill(killed, signal.SIGKILL)
    await programs.until(lambda: len(shared.children) == WORKERS and killed not in shared.children)
    after = await until_all_answer(shared)
    assert len(before & after) == WORKERS - 1


async def test_metrics_are_those_of_all(shared: Program) -> None:
    await until_all_answer(shared)
    name = 'epd_proxy_requests_total{path="chat",status="200"} '
    counts = []
    for _ in range(12):
        text = (await request(shared.port, "GET", "/metrics")).text
        counts.append(next(line for line in text.splitlines() if line.startswith(name)))
    assert len(set(counts)) == 1  # whichever process is asked
    await asyncio.gather(*(answered_by(shared) for _ in range(5)))
    text = (await request(shared.port, "GET", "/metrics")).text
    assert f"{name}{float(counts[0].rpartition(' ')[2]) + 5}" in text.splitlines()


async def test_limits_hold_for_all_together(shared: Program) -> None:
    """A request is counted by its head, so those whose bodies never come fill the limit."""
    await until_all_answer(shared)
    clients = [await Client.connect(shared.port) for _ in range(8 * REQUESTS)]
    for client in clients:
        client.send("POST", CHAT, b"{", {"Content-Length": "1000"})
    refused: set[int] = set()

    async def look(number: int) -> None:
        assert (await clients[number].response()).status == 503
        refused.add(number)

    looks = [asyncio.create_task(look(number)) for number in range(len(clients))]
    await programs.until(lambda: len(refused) >= len(clients) - REQUESTS)
    busy = "epd_proxy_in_flight_requests "
    text = (await request(shared.port, "GET", "/metrics")).text
    assert f"{busy}{float(REQUESTS)}" in text.splitlines()
    assert len(refused) == len(clients) - REQUESTS
    for task in looks:
        task.cancel()
    for client in clients:
        await client.close()


async def test_a_share_of_each_limit() -> None:
    config = ProxyConfig()
    whole, half = Core(config, bytes(32)), Core(config, bytes(32), share=2)
    assert half.budget.limit == whole.budget.limit // 2
    assert half.buffers.idle_limit == whole.buffers.idle_limit // 2


BEGINNING = """
import os, signal
from epd_proxy import workers

children = workers._Children({})

def start(number):
    pid = os.fork()
    if not pid:
        while True:
            signal.pause()
    children.processes[pid] = number

def wait(really=os.wait):
    workers.os.wait = really
    os.kill(os.getpid(), signal.SIGTERM)
    return really()

workers.os.wait = wait
raise SystemExit(workers._supervise(children, start, 2))
"""
"""Supervises workers that have no handlers yet, and is asked to end as soon as it can take it."""


def test_workers_that_had_only_begun_to_start_have_not_failed() -> None:
    assert subprocess.run([sys.executable, "-c", BEGINNING], timeout=30, check=False).returncode == 0


def test_a_signal_ends_all(shared: Program) -> None:
    children = shared.children
    assert len(children) == WORKERS
    shared.process.terminate()
    assert shared.process.wait(30) == 0
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
