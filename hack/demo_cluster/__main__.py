"""Ask a question about a picture of real vLLM pods, from nothing: `make demo-cluster`."""

import os
import sys
import time
from pathlib import Path

from epd_operator.cli.reader import read
from hack.chat import RefusedError, ask, body
from hack.cluster.__main__ import DIRECTORY
from hack.cluster.errors import ClusterError
from hack.cluster.provider import choose
from hack.demo_cluster.deployment import Deployed, example
from hack.demo_cluster.installation import Installation
from hack.demo_cluster.model import write_model
from hack.demo_cluster.volumes import Volumes
from hack.images.catalog import ENGINE_CPU, OPERATOR
from hack.pictures import png

FILE = Path(__file__).resolve().parents[2] / "examples" / "quickstart.yaml"
NAMESPACE = "epd-demo"
QUESTION = "What is in this picture?"
READY_SECONDS = 900


def show(directory: Path, context: str, begun: float) -> None:
    """Do all of it, and say so. Raises ClusterError, RefusedError."""

    def say(what: str) -> None:
        print(f"[{time.monotonic() - begun:4.0f} s] {what}", flush=True)

    choice = choose(context)
    say(f"cluster: {choice.name}")
    provider = choice.provider(directory)
    provider.start()
    choice.save(directory)
    cluster = Installation.on(provider)
    say("images: operator and proxy; then helm install")
    cluster.install()
    say("image of vLLM for CPUs: 6 GB, the first time minutes")
    engine = cluster.image(ENGINE_CPU)
    cluster.namespace(NAMESPACE)
    volumes = Volumes(provider, cluster.kubectl)
    for claim in ("models", "embeddings"):
        volumes.claim(NAMESPACE, claim)
    say("a tiny model, written by a job")
    write_model(cluster.kubectl, NAMESPACE, engine)
    [document] = read(str(FILE))
    deployed = Deployed(cluster.kubectl, NAMESPACE, document.content["metadata"]["name"])
    deployed.apply(example(document.content, engine, operator=cluster.image(OPERATOR)))
    say(f"kubectl apply: {FILE.name}")
    deployed.wait_ready(READY_SECONDS)
    print(f"\n$ kubectl get epd -n {NAMESPACE}\n{deployed.row()}\n", flush=True)
    with deployed.reached() as url:
        answer = ask(url, body(document.content["spec"]["model"]["id"], QUESTION, (png(1024, 768, 0),)))
    print(f"{QUESTION} (and a picture)\nthe answer of random weights: {answer.text!r}")
    print(f"token ids: {list(answer.token_ids)}")
    say("done; `make cluster-down` stops the cluster")


def main() -> int:
    directory = Path(os.environ.get("EPD_CLUSTER") or DIRECTORY).resolve()
    try:
        show(directory, sys.argv[1] if sys.argv[1:] else "", time.monotonic())
    except (ClusterError, RefusedError) as error:
        print(f"demo-cluster: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
