"""Real vLLM in pods: image questions through the roles give the tokens of one instance that does it all."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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
from hack.images.catalog import ENGINE_CPU
from hack.pictures import png
from tests.e2e.conftest import new_namespace

pytestmark = pytest.mark.e2e

QUESTION = "What is in this picture?"
PICTURES = tuple(png(1024, 768, seed) for seed in range(2))
REQUESTS = [body("./tiny-qwen2-vl", QUESTION, pictures) for pictures in (PICTURES[:1], PICTURES, ())]
READY_SECONDS = 900
SENT = "epd_proxy_upstream_request_bytes_total"

Tokens = list[tuple[int, ...]]


@dataclass(frozen=True)
class Place:
    """A namespace with the tiny model, where deployments share their embeddings' claim."""

    installed: Installation
    namespace: str
    engine: str

    @contextmanager
    def served(self, name: str, file: Path = FILE, **changes: Object | None) -> Iterator[Deployed]:
        """An example under another name, with parts of its spec replaced or, where None, left out. It is ready."""
        [document] = read(str(file))
        content = example(document.content, self.engine, operator="", **changes)
        spec = {key: value for key, value in content["spec"].items() if value is not None}
        deployed = Deployed(self.installed.kubectl, self.namespace, name)
        deployed.apply({**content, "metadata": {**content["metadata"], "name": name}, "spec": spec})
        try:
            deployed.wait_ready(READY_SECONDS)
            yield deployed
        finally:
            deployed.delete()


@pytest.fixture(scope="module")
def place(installed: Installation) -> Iterator[Place]:
    with new_namespace(installed.kubectl) as namespace:
        engine = installed.image(ENGINE_CPU)
        volumes = Volumes(installed.provider, installed.kubectl)
        for claim in ("models", "embeddings"):
            volumes.claim(namespace, claim)
        write_model(installed.kubectl, namespace, engine)
        yield Place(installed, namespace, engine)
        volumes.remove(namespace)


@pytest.fixture(scope="module")
def expected(place: Place) -> Tokens:
    """What one instance answers that does everything."""
    with place.served("alone", encode=None, transfer=None) as alone:
        assert alone.get()["status"]["topology"] == "PD"
        return tokens(alone)


def tokens(deployed: Deployed) -> Tokens:
    with deployed.reached() as url:
        answers = [ask(url, request).token_ids for request in REQUESTS]
        if deployed.get()["status"]["topology"] != "PD":
            assert 0 < metric(url, SENT, role="decode") < len(PICTURES[0]) / 10, "media were sent to decode"
        return answers


def encoded(deployed: Deployed) -> float:
    """Requests that the encoder answered."""
    [encoder] = deployed.pods("encode")
    with forwarded(deployed.kubectl, deployed.namespace, f"pod/{encoder['metadata']['name']}") as url:
        return metric(url, "vllm:request_success_total")


@pytest.mark.smoke
def test_an_encoder_and_decode_answer_questions_about_pictures(place: Place) -> None:
    with place.served("e-pd") as deployed:
        assert deployed.get()["status"]["topology"] == "E+PD"
        answers = tokens(deployed)
        assert len(set(answers)) == len(REQUESTS)
        assert encoded(deployed) == 2


def test_e_pd_with_torch_shm_gives_the_same_tokens(place: Place, expected: Tokens) -> None:
    with place.served("shm", encode={"preprocessing": {"tensorIPC": "torch_shm"}}) as deployed:
        [encoder] = deployed.pods("encode")
        name = encoder["metadata"]["name"]
        assert "torch_shm" in encoder["spec"]["containers"][0]["args"]
        inside = deployed.kubectl("exec", name, f"--namespace={place.namespace}", "--", "df", "-m", "/dev/shm").stdout
        assert inside.split("\n")[1].split()[:2] == ["tmpfs", "2368"]
        assert tokens(deployed) == expected
        assert encoded(deployed) == 2


def test_e_p_d_over_nixl_gives_the_same_tokens(place: Place, expected: Tokens) -> None:
    with place.served("e-p-d", FILE.parent / "e-p-d.yaml") as deployed:
        assert deployed.get()["status"]["topology"] == "E+P+D"
        assert tokens(deployed) == expected
        assert encoded(deployed) == 2
