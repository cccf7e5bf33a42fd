"""`make faults`: every fault, and the table of what clients saw."""

import argparse
import os
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path

from hack.cluster.__main__ import DIRECTORY
from hack.cluster.errors import ClusterError
from hack.cluster.programs import kubernetes_version
from hack.cluster.provider import chosen
from hack.demo_cluster.installation import Installation
from tests.e2e.faults.faults import FAULTS
from tests.e2e.faults.report import Result, table
from tests.e2e.faults.run import deployed, suffer

ROOT = Path(__file__).parents[3]
FILE = ROOT / "docs" / "development" / "faults.md"
IN_FLIGHT = 50
INTRODUCTION = """# Faults under load

Written by `make faults` on {date}: Kubernetes {kubernetes}, one node with {cpus} CPUs, {in_flight} requests in flight
by the OpenAI client, which sends none of them twice. The engines are simulated (E+P+D, two instances of each role, two
proxies; a request takes two seconds), and each answer depends on all of its request: a wrong one is seen. Between
faults the deployment is whole.

A killed pod may take along the requests that are in flight on it, each with an error of OpenAI's shape; where it is a
proxy, with a broken connection. Whatever is planned may fail none.

"""


def main(directory: Path, only: str, in_flight: int) -> int:
    """Suffer all; 1 if there is something to complain of. Raises ClusterError."""
    installed = Installation.on(chosen(directory).provider(directory))
    installed.install()
    namespace = f"epd-faults-{secrets.token_hex(3)}"
    installed.namespace(namespace)
    results: list[Result] = []
    try:
        with deployed(installed, namespace) as broken:
            for fault in FAULTS:
                if only in fault.name:
                    results.append(suffer(installed, broken, fault, in_flight))
                    print(*results[-1].cells, *results[-1].complaints, sep=" | ", flush=True)
    finally:
        installed.kubectl("delete", "namespace", namespace, "--wait=false")
    if not only:
        FILE.write_text(_text(results, in_flight))
    return int(any(result.complaints for result in results))


def _text(results: list[Result], in_flight: int) -> str:
    cpus = os.cpu_count()
    head = INTRODUCTION.format(
        date=datetime.now(UTC).date(), kubernetes=kubernetes_version(), cpus=cpus, in_flight=in_flight
    )
    complaints = [f"- {result.name}: {text}\n" for result in results for text in result.complaints]
    return head + table(results) + ("\nNot as it should be:\n\n" + "".join(complaints) if complaints else "")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="Faults whose names contain this; the table is not written then.")
    parser.add_argument("--in-flight", type=int, default=IN_FLIGHT)
    parser.add_argument("--directory", type=Path, default=DIRECTORY)
    arguments = parser.parse_args()
    try:
        sys.exit(main(arguments.directory.resolve(), arguments.only, arguments.in_flight))
    except ClusterError as error:
        print(f"faults: {error}", file=sys.stderr)
        sys.exit(1)
