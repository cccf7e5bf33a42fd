"""Real vLLM in pods: an image question through encoder and decode gives the tokens of one instance that does it all."""

from collections.abc import Iterator

import pytest

from epd_operator.cli.reader import read
from hack.chat import ask, body, metric
from hack.cluster.kubectl import Object
from hack.demo_cluster.__main__ import FILE
from hack.demo_cluster.deployment import Deployed, example
from hack.demo_cluster.forward import forwarded
from hack.demo_cluster.installation import Installation
from hack.demo_cluster.model import write_model
from hack.demo_cluster.volumes import Volumes
from hack.images.catalog import ENGINE_CPU, OPERATOR
from hack.pictures import png

pytestmark = pytest.mark.e2e

QUESTION = "What is in this picture?"
PICTURES = tuple(png(1024, 768, seed) for seed in range(2))
READY_SECONDS = 900
SENT_TO_DECODE = "epd_proxy_upstream_request_bytes_total"


@pytest.fixture(scope="module")
def engine(installed: Installation) -> str:
    """The image of a vLLM for CPUs, on the nodes."""
    return installed.image(ENGINE_CPU)


@pytest.fixture
def served(installed: Installation, volumes: Volumes, engine: str, namespace: str) -> Iterator[dict[str, Deployed]]:
    """The quickstart, and the same model on one instance that does everything, both ready."""
    for claim in ("models", "embeddings"):
        volumes.claim(namespace, claim)
    write_model(installed.kubectl, namespace, engine)
    [document] = read(str(FILE))
    whole = example(document.content, engine, operator=installed.image(OPERATOR))
    deployments = {}
    for name, content in (("split", whole), ("alone", without_encoder(whole))):
        deployments[name] = Deployed(installed.kubectl, namespace, name)
        deployments[name].apply({**content, "metadata": {**content["metadata"], "name": name}})
    for deployed in deployments.values():
        deployed.wait_ready(READY_SECONDS)
    yield deployments
    for deployed in deployments.values():
        deployed.delete()


def without_encoder(content: Object) -> Object:
    spec = {name: value for name, value in content["spec"].items() if name not in ("encode", "transfer")}
    return {**content, "spec": spec}


def test_same_tokens_and_no_media_at_decode(served: dict[str, Deployed]) -> None:
    split, alone = served["split"], served["alone"]
    assert [split.get()["status"]["topology"], alone.get()["status"]["topology"]] == ["E+PD", "PD"]
    requests = [body("./tiny-qwen2-vl", QUESTION, pictures) for pictures in (PICTURES[:1], PICTURES, ())]
    with split.reached() as url, alone.reached() as alone_url:
        answers = [ask(url, request).token_ids for request in requests]
        assert answers == [ask(alone_url, request).token_ids for request in requests]
        assert len(set(answers)) == len(answers)
        assert metric(url, SENT_TO_DECODE, role="decode") < len(PICTURES[0]) / 10
    [encoder] = split.pods("encode")
    with forwarded(split.kubectl, split.namespace, f"pod/{encoder['metadata']['name']}") as url:
        assert metric(url, "vllm:request_success_total") == 2
