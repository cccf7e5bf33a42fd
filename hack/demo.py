"""Show one EPDDeployment answering an image question on this machine, and that it answers as it should.

    make demo

Installs a vLLM that needs no accelerator, makes a tiny random model, starts `examples/quickstart.yaml` (encoder, and an
instance that prefills and decodes) with `epd run`, and one monolithic vLLM beside it. Then it asks both the same and
compares. Exit status 0 means that everything shown held.
"""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from epd_operator.api.deployment import EPDDeployment
from epd_operator.cli.reader import read
from epd_operator.local.ports import ADDRESS, HeldPorts
from epd_operator.local.readiness import probe
from hack import engine_env, models
from hack.chat import Answer, RefusedError, ask, body, metric
from hack.local_run import LocalRun, RunError
from hack.monolith import KEY, Monolith, MonolithError
from hack.pictures import png
from hack.waiting import until

FILE = Path(__file__).resolve().parent.parent / "examples" / "quickstart.yaml"
QUESTION = "What is in this picture?"
PICTURES = tuple(png(1024, 768, seed) for seed in range(3))
SENT_TO_DECODE = "epd_proxy_upstream_request_bytes_total"


@dataclass
class Claims:
    """What the demo shows, and whether all of it held."""

    hold: bool = True

    def check(self, claim: str, held: bool, evidence: str) -> None:
        """Print a claim with its evidence."""
        self.hold = self.hold and held
        print(f"  {'ok' if held else 'NO'}  {claim}: {evidence}", flush=True)


def deployment_of(file: Path) -> EPDDeployment:
    """The one deployment in a file of examples/."""
    [document] = read(str(file))
    return EPDDeployment.model_validate(document.content)


@contextlib.contextmanager
def raw_proxy(run: LocalRun) -> Iterator[str]:
    """A second proxy in front of the same engines that sends the media on to decode; yields its URL."""
    with HeldPorts() as ports:
        port = ports.take()
        model = run.wait_for("planned")["model"]
        command = [str(Path(sys.executable).with_name("epd-proxy")), "--config", str(run.directory / "proxy.yaml")]
        command += ["--media-forwarding", "Raw", "--host", ADDRESS, "--port", str(port)]
        for role in ("encode", "decode"):
            command += [f"--{role}", run.instance(f"{role}-0")["url"]]
        for key in ("engine-key", "uuid-key"):
            command += [f"--{key}-file", str(run.directory / key)]
        command += ["--embeddings-connector", "ECExampleConnector"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            if not until(lambda: probe(ADDRESS, port, model, None).serves, 60):
                raise RunError("the proxy with mediaForwarding Raw does not serve")
            yield f"http://{ADDRESS}:{port}"
        finally:
            process.terminate()
            process.wait()


def show(run: LocalRun, monolith: Monolith) -> bool:
    """Ask, compare, print; whether everything held."""
    claims = Claims()
    url, model = run.wait_until_served(), monolith.model
    encoder = run.instance("encode-0")["url"]

    print(f"\nAsking {url}: {QUESTION!r} and a picture of {len(PICTURES[0]):,} bytes\n")
    encoded = metric(encoder, "vllm:request_success_total")
    answer = ask(url, body(model, QUESTION, PICTURES[:1]))
    print(f"  the answer of random weights: {answer.text!r}\n  token ids: {list(answer.token_ids)}\n")
    encoded = metric(encoder, "vllm:request_success_total") - encoded
    claims.check("the encoder encoded", encoded == 1, f"it counts {encoded:.0f} finished request")

    with_metadata = metric(url, SENT_TO_DECODE, role="decode")
    with raw_proxy(run) as raw_url:
        raw_answer = ask(raw_url, body(model, QUESTION, PICTURES[:1]))
        with_media = metric(raw_url, SENT_TO_DECODE, role="decode")
    claims.check(
        "decode received metadata only",
        with_metadata < len(PICTURES[0]) / 100 < with_media,
        f"{with_metadata:,.0f} bytes sent to it with mediaForwarding Metadata, {with_media:,.0f} with Raw",
    )
    claims.check("the same answer with Raw", raw_answer == answer, f"{len(raw_answer.token_ids)} token ids")
    compare(claims, url, monolith, answer)
    return claims.hold


def compare(claims: Claims, url: str, monolith: Monolith, first: Answer) -> None:
    """The deployment's answers against those of the monolithic instance."""
    pairs = [(first, ask(monolith.url, body(monolith.model, QUESTION, PICTURES[:1]), KEY))]
    for pictures in (PICTURES[1:2], PICTURES[2:3], PICTURES, ()):
        request = body(monolith.model, QUESTION, pictures)
        pairs.append((ask(url, request), ask(monolith.url, request, KEY)))
    same = sum(ours.token_ids == theirs.token_ids for ours, theirs in pairs)
    claims.check("the token ids of a monolithic instance", same == len(pairs), f"{same} of {len(pairs)} answers equal")
    different = {ours.token_ids for ours, _ in pairs}
    claims.check("answers depend on the picture", len(different) == len(pairs), f"{len(different)} different ones")


def main() -> int:
    begun = time.monotonic()
    try:
        engine = engine_env.ensure()
        folder = models.ensure(engine)
        print(
            f"vLLM {engine_env.VLLM_VERSION} and the model are there after {time.monotonic() - begun:.0f} s", flush=True
        )
        # Compiled modules of one start are read by the next ones.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        print(f"starting {FILE.name} and a monolithic instance", flush=True)
        with Monolith(deployment_of(FILE), folder, engine) as monolith, LocalRun(FILE, folder, engine) as run:
            run.wait_until_served()
            monolith.wait_until_served()
            print(f"all serve after {time.monotonic() - begun:.0f} s", flush=True)
            held = show(run, monolith)
    except (engine_env.EngineEnvironmentError, models.ModelError, RunError, MonolithError, RefusedError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"\n{'everything held' if held else 'NOT everything held'}; {time.monotonic() - begun:.0f} s in all")
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
