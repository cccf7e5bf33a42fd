"""CPU time of the verdict on one object in a process that is warm, as in the admission webhook.

    python -m benchmarks.verdict [--runs N] [FILE...]

Prints, for each example and for one object with many user args, the median milliseconds of CPU for parsing, wiring and
checking. Asserts nothing; the aim is less than 5 ms for a typical object.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from epd_operator.api.parse import parse
from epd_operator.cli.reader import read
from epd_operator.engine.rules import check
from epd_operator.engine.wiring import wire

ROOT = Path(__file__).parents[1]
ARGS = ["--max-model-len", "32k", "--gpu-memory-utilization=0.9", "--max-num-seqs", "256", "--limit-mm-per-prompt"]
ARGS += ['{"image":4,"video":1}', "--no-such-flag", "--kv-cache-dtype", "auto", "--enable_prefix_caching"]


def milliseconds(document: Any, runs: int) -> float:
    """Median CPU time of one verdict."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        parsed = parse(document)
        if parsed.deployment is not None:
            check(wire(parsed.deployment))
        times.append(time.process_time() - start)
    return statistics.median(times) * 1000


def busy() -> dict[str, Any]:
    """An object of three roles with many user args, one of them unknown."""
    spec: dict[str, Any] = {"model": {"id": "org/model"}, "engine": {"version": "0.33.0"}}
    spec |= {role: {"args": ARGS} for role in ("encode", "prefill", "decode")}
    return {"apiVersion": "epd.dev/v1alpha1", "kind": "EPDDeployment", "metadata": {"name": "busy"}, "spec": spec}


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--runs", type=int, default=200)
    options.add_argument("files", nargs="*", type=Path)
    given = options.parse_args()
    documents = {"many user args": busy()}
    for file in given.files or sorted((ROOT / "examples").glob("*.yaml")):
        documents |= {f"{file.name} {document.name}": document.content for document in read(str(file))}
    milliseconds(busy(), 3)  # reads the release's table
    for name, document in documents.items():
        print(f"{name:<48} {milliseconds(document, given.runs):7.2f} ms")


if __name__ == "__main__":
    main()
