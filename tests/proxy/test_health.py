"""Which engines are used: those that are there, healthy and of the right kind, whatever clients do to them."""

from __future__ import annotations

import asyncio

import pytest

from epd_proxy.health import SILENT
from tests.proxy.conftest import Deploy
from tests.simulator.faults import Mode
from tests.simulator.requests import chat, new_mark


async def test_an_engine_that_is_late_with_a_health_check_is_kept_and_with_several_ejected(deploy: Deploy) -> None:
    proxy = await deploy(config={"timeouts": {"probeSeconds": 0.1, "probeIntervalSeconds": 0.05}})
    [engine] = proxy.engines["decode"]
    [(endpoint, prober)] = [known for known in proxy.members._known.values() if known[0].role == "decode"]
    engine.unanswered.add("/health")
    await proxy.until(lambda: prober._late >= 1)
    engine.unanswered.clear()
    assert endpoint.state.value == "up"
    assert prober._silent == 0  # that is for requests of clients
    await proxy.until(lambda: prober._late == 0)
    assert (await proxy.post(chat(new_mark()))).status == 200
    engine.unanswered.add("/health")
    await proxy.until(lambda: endpoint.state.value == "down")
    engine.unanswered.clear()
    await proxy.until(lambda: endpoint.state.value == "up")


async def test_a_mooncake_prefill_whose_bootstrap_server_never_answers_is_asked_again(deploy: Deploy) -> None:
    proxy = await deploy("E+P+D", kv="MooncakeConnector", config={"timeouts": {"probeSeconds": 0.1}})
    [engine] = proxy.engines["prefill"]
    [endpoint] = [e for e in proxy.core.fleet.endpoints() if e.role == "prefill"]
    await engine.stop()
    await proxy.until(lambda: endpoint.state.value == "down")
    engine.unanswered.add("/query")
    await engine.start()
    await proxy.until(lambda: "bootstrap engine did not answer" in endpoint.reason)
    engine.unanswered.clear()
    await proxy.until(lambda: endpoint.state.value == "up")


async def test_an_engine_that_ends_is_ejected_and_taken_back(deploy: Deploy) -> None:
    proxy = await deploy(decoders=2)
    first, _ = proxy.engines["decode"]
    await first.stop()
    answers = await asyncio.gather(*(proxy.post(chat(new_mark())) for _ in range(20)))
    assert {a.status for a in answers} == {200}
    await proxy.until(lambda: [e.state.value for e in proxy.core.fleet.endpoints()].count("down") == 1)
    await first.start()
    await proxy.until(lambda: all(e.state.value == "up" for e in proxy.core.fleet.endpoints()))


@pytest.mark.parametrize("role", ["prefill", "decode"])
async def test_without_an_engine_of_a_role_the_proxy_is_not_ready(deploy: Deploy, role: str) -> None:
    proxy = await deploy("E+P+D")
    await proxy.engines[role][0].stop()
    await proxy.until(lambda: not proxy.core.fleet.ready)
    assert (await proxy.get("/health")).status == 503
    answer = await proxy.post(chat(new_mark()))
    assert (answer.status, "retry-after" in answer.headers) == (503, True)


async def test_a_clients_bad_requests_eject_nothing(deploy: Deploy) -> None:
    proxy = await deploy()
    proxy.fault("decode", Mode.CLOSE, match=b"poison")
    proxy.fault("decode", Mode.STATUS, 500, match=b"venom")
    for word in ("poison", "venom") * 10:
        assert (await proxy.post(chat(f"{new_mark()} {word}"))).status in (500, 502)
        assert (await proxy.post(chat(new_mark()))).status == 200
    assert not sum(proxy.core.metrics.ejections.values())


async def test_another_model_is_not_used(deploy: Deploy) -> None:
    proxy = await deploy(decoders=2, config={"servedNames": ["sim"]})
    wrong, _ = proxy.engines["decode"]
    await wrong.stop()
    wrong.model = "other"
    await proxy.until(lambda: any(e.state.value == "down" for e in proxy.core.fleet.endpoints()))
    await wrong.start()
    await proxy.until(lambda: any(e.state.value == "refused" for e in proxy.core.fleet.endpoints()))
    assert b"serves other" in (await proxy.get("/health")).body
    assert (await proxy.post(chat(new_mark()))).status == 200


async def test_an_engine_that_is_healthy_and_answers_no_request_is_ejected(deploy: Deploy) -> None:
    """Answers to the health checks in between are none to requests."""
    proxy = await deploy(config={"timeouts": {"firstByteSeconds": 0.2, "probeIntervalSeconds": 0.05}})
    proxy.fault("decode", Mode.HANG)
    for _ in range(SILENT):
        assert (await proxy.post(chat(new_mark()))).status == 504
    assert proxy.core.metrics.ejections["decode", "silent"] == 1
