"""Real engines on this machine: a deployment answers as one vLLM does, and ends without a trace.

The order matters: the deployments are started once, and the last tests end them.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from epd_operator.local.processes import members
from epd_operator.local.shared_memory import DIRECTORY, mapped
from hack import engine_env, models
from hack.chat import ask, metric
from hack.demo import deployment_of, raw_proxy
from hack.engine_env import VLLM_VERSION, EngineEnvironment
from hack.local_run import LocalRun
from hack.monolith import Monolith
from tests.conformance import engine_sim as engine_sims
from tests.conformance import shapes
from tests.conformance.conftest import missing
from tests.conformance.serving import EXAMPLES, MODEL, PICTURES, QUESTIONS, Reference, example, served
from tests.integration.eventually import eventually

pytestmark = pytest.mark.conformance
SENT = "epd_proxy_upstream_request_bytes_total"


@pytest.fixture(scope="module")
def engine() -> EngineEnvironment:
    try:
        return engine_env.ensure()
    except engine_env.EngineEnvironmentError as error:
        missing(f"the CPU build of vLLM cannot be installed: {error}")
        raise


@pytest.fixture(scope="module")
def folder(engine: EngineEnvironment) -> Path:
    return models.ensure(engine)


@pytest.fixture(scope="module")
def reference(engine: EngineEnvironment, folder: Path) -> Iterator[Reference]:
    with Monolith(deployment_of(EXAMPLES / "quickstart.yaml"), folder, engine) as monolith:
        yield Reference(monolith)


@pytest.fixture(scope="module")
def e_pd(reference: Reference, engine: EngineEnvironment, folder: Path) -> Iterator[LocalRun]:
    """E+PD, started together with the reference."""
    with served(EXAMPLES / "quickstart.yaml", folder, engine) as run:
        reference.monolith.wait_until_served()
        yield run


@pytest.fixture(scope="module")
def e_p_d(
    e_pd: LocalRun, engine: EngineEnvironment, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalRun]:
    """E+P+D, beside E+PD."""
    file = example("e-p-d.yaml", engine, tmp_path_factory.mktemp("examples"))
    with served(file, folder, engine) as run:
        yield run


@pytest.mark.parametrize("question", QUESTIONS)
def test_e_pd_answers_as_one_vllm_does(e_pd: LocalRun, reference: Reference, question: str) -> None:
    assert ask(e_pd.wait_until_served(), QUESTIONS[question]) == reference.answer(question)


def test_answers_depend_on_the_question(reference: Reference) -> None:
    """Else the comparisons would show nothing."""
    assert len({reference.answer(question).token_ids for question in QUESTIONS}) == len(QUESTIONS)


def test_the_encoder_encodes_and_decode_sees_no_picture(e_pd: LocalRun, reference: Reference) -> None:
    url = e_pd.wait_until_served()
    encoder = e_pd.instance("encode-0")["url"]
    encoded, sent = metric(encoder, "vllm:request_success_total"), metric(url, SENT, role="decode")
    answer = ask(url, QUESTIONS["three pictures"])
    assert metric(encoder, "vllm:request_success_total") > encoded
    assert metric(url, SENT, role="decode") - sent < min(len(picture) for picture in PICTURES)
    with raw_proxy(e_pd) as raw:
        assert ask(raw, QUESTIONS["three pictures"]) == answer
        assert metric(raw, SENT, role="decode") > sum(len(picture) for picture in PICTURES)


@pytest.mark.parametrize("question", QUESTIONS)
def test_e_p_d_answers_as_one_vllm_does(e_p_d: LocalRun, reference: Reference, question: str) -> None:
    assert ask(e_p_d.wait_until_served(), QUESTIONS[question]).token_ids == reference.answer(question).token_ids


def same_shapes(run: LocalRun, consumer: str, *simulator: str) -> None:
    key = (run.directory / "engine-key").read_text().strip()
    names = {name.partition("-")[0]: name for name in run.wait_for("planned")["instances"]}
    real = shapes.Engines({role: run.instance(name)["url"] for role, name in names.items()}, MODEL, key)
    said = shapes.walk(real, consumer)
    release = VLLM_VERSION.rpartition(".")[0]
    options = ("--minor", release, "--embeddings-connector", "ECExampleConnector", *simulator)
    with shapes.simulated(MODEL, key, *options) as engines:
        simulated = shapes.walk(engines, consumer)
    found = {name: shapes.differences(simulated[name], reply) for name, reply in said.items()}
    assert not {name: different for name, different in found.items() if different}


def test_the_simulator_says_what_e_pd_says(e_pd: LocalRun) -> None:
    same_shapes(e_pd, "decode")


def test_the_simulator_says_what_e_p_d_says(e_p_d: LocalRun, engine: EngineEnvironment) -> None:
    if not engine.has_nixl:
        missing("KV blocks go through files, whose connector reports nothing: NIXL cannot be installed")
    same_shapes(e_p_d, "prefill")


@pytest.fixture
def engine_sim(e_pd: LocalRun, folder: Path, tmp_path: Path) -> Iterator[shapes.Engines]:
    """The simulator of clusters without accelerators, with the key of E+PD."""
    key = (e_pd.directory / "engine-key").read_text().strip()
    with engine_sims.engine_sim(folder / "tiny-qwen2-vl", MODEL, key, tmp_path) as engines:
        yield engines


def test_the_simulator_of_clusters_says_what_e_pd_says(e_pd: LocalRun, engine_sim: shapes.Engines) -> None:
    urls = {role: e_pd.instance(f"{role}-0")["url"] for role in engine_sim.urls}
    said = shapes.walk(shapes.Engines(urls, MODEL, engine_sim.key), "decode")
    simulated = shapes.walk(engine_sim, "decode")
    found = {name: shapes.differences(simulated[name], said[name]) for name in engine_sims.SPOKEN}
    assert not {name: different for name, different in found.items() if different}
    for url in (urls["decode"], engine_sim.urls["decode"]):
        assert metric(url, engine_sims.COUNTED[0], model_name=MODEL) > 0
        assert metric(url, engine_sims.COUNTED[1], model_name=MODEL) == 0


def test_the_simulator_of_clusters_wants_a_model_as_vllm_does(engine: EngineEnvironment, tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    real = subprocess.run([engine.vllm, "serve", absent], capture_output=True, text=True, check=False)
    pretended = engine_sims.start([absent])
    _, said = pretended.communicate(timeout=engine_sims.SECONDS)
    assert pretended.returncode == real.returncode == 1
    assert absent in said
    assert absent in real.stdout + real.stderr


@pytest.mark.parametrize("topology", ["e_pd", "e_p_d"])
@pytest.mark.parametrize("name", shapes.THROUGH)
def test_what_the_proxy_makes_of_it(topology: str, name: str, request: pytest.FixtureRequest) -> None:
    """Refusals keep vLLM's status and shape; APIs beside chat are answered by vLLM, media in them too."""
    run: LocalRun = request.getfixturevalue(topology)
    status, path, body = shapes.THROUGH[name]
    proxy = shapes.Engines({"proxy": run.wait_until_served()}, MODEL, "")
    # Beside a vLLM that starts, on few cores, engines may have been late with their health checks.
    eventually("the proxy has engines", lambda: proxy.ask("proxy", "/health").status == 200, seconds=60)
    reply = proxy.ask("proxy", path, {"model": MODEL} | body)
    kind = "text/event-stream" if body.get("stream") else "application/json"
    assert (reply.status, reply.kind) == (status, kind), reply.body
    if status != 200:
        assert {"message", "type", "code"} <= reply.json["error"].keys()
        assert reply.json["error"]["code"] == status
    elif body.get("stream"):
        assert reply.events[-1] == "[DONE]"
        assert all("choices" in json.loads(event) for event in reply.events[:-1])


def test_decode_was_given_its_kv_blocks(e_p_d: LocalRun, engine: EngineEnvironment) -> None:
    ask(e_p_d.wait_until_served(), QUESTIONS["one picture"])
    decode = e_p_d.instance("decode-0")["url"]
    assert metric(decode, "vllm:external_prefix_cache_hits_total") > 0
    if engine.has_nixl:
        assert metric(decode, "vllm:nixl_bytes_transferred_sum") > 0


def test_a_killed_engine_ends_its_run_and_no_other(e_p_d: LocalRun, e_pd: LocalRun, reference: Reference) -> None:
    """Also the test that two runs at once do not collide."""
    sessions = [e_p_d.instance(name)["pid"] for name in e_p_d.wait_for("planned")["instances"]]
    directory = e_p_d.directory
    pids = [pid for session in sessions for pid in members(session)]
    segments = {segment.path for pid in pids for segment in mapped(pid)}
    assert segments
    os.kill(e_p_d.instance("prefill-0")["pid"], signal.SIGKILL)
    died = e_p_d.wait_for("died", 60)
    assert (died["instance"], died["signal"]) == ("prefill-0", "SIGKILL")
    assert died["meaning"] == "it was the only prefill instance: no request can begin any more"
    assert e_p_d.process.wait(120) == 1
    assert e_p_d.wait_for("stopped")["survivors"] == []
    assert not any(members(session) for session in sessions)
    assert not directory.exists()
    assert not [path for path in segments if Path(path).exists()]
    assert ask(e_pd.wait_until_served(), QUESTIONS["one picture"]) == reference.answer("one picture")


def test_ctrl_c_ends_real_engines_without_a_trace(e_pd: LocalRun) -> None:
    sessions = [e_pd.instance(name)["pid"] for name in e_pd.wait_for("planned")["instances"]]
    directory = e_pd.directory
    segments = {segment.path for session in sessions for pid in members(session) for segment in mapped(pid)}
    assert segments
    assert all(path.startswith(DIRECTORY) for path in segments)
    assert e_pd.stop(signal.SIGINT) == 0
    assert not any(members(session) for session in sessions)
    assert not directory.exists()
    assert not [path for path in segments if Path(path).exists()]
