"""What the operator costs for N EPDDeployments at once on a real API server.

    python -m benchmarks.operator [--n 20 100] [--lws CHECKOUT] [--out FILE]

Each number of objects gets a control plane of its own, with controller-manager, scheduler, audit log and a test
kubelet. Prints a table after each; asserts nothing. `--lws`: sources of kubernetes-sigs/lws, whose manager is measured
in the same way.
"""

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.operator.epd import EpdOperator
from benchmarks.operator.lws import Lws
from benchmarks.operator.measurement import Measurement
from benchmarks.operator.phase import Cost
from benchmarks.operator.report import table
from benchmarks.operator.subject import Subject
from hack.cluster.audit import AuditLog
from hack.cluster.local import LocalCluster, temporary_control_plane
from hack.cluster.rest import Rest

GPUS = 1_000_000


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.operator", description=(__doc__ or "").split("\n")[0])
    options.add_argument("--n", type=int, nargs="+", default=[20, 100], help="objects at once")
    options.add_argument("--replicas", type=int, default=2, help="instances of each role")
    options.add_argument("--idle", type=float, default=30, help="seconds of the quiet phase")
    options.add_argument("--changes", type=int, default=10, help="objects that are changed, one after the other")
    options.add_argument("--limit", type=float, default=900, help="seconds that a phase may take")
    options.add_argument("--lws", type=Path, help="sources of kubernetes-sigs/lws: its manager as a peer")
    options.add_argument("--profiler", default="", help="command during the creation; {pid} is the operator's")
    options.add_argument("--out", type=Path, help="file for the figures, as JSON")
    given = options.parse_args()
    runs: dict[str, tuple[int, dict[str, Cost]]] = {}
    kinds: list[type[Subject]] = [EpdOperator, *([Lws] if given.lws else [])]
    for count in given.n:
        for subject in kinds:
            title = f"{subject.name}, {count}"
            print(title, flush=True)
            runs[title] = (count, measure(subject, count, given))
            print("\n" + table(runs) + "\n", flush=True)
    if given.out:
        found = {title: {name: cost.as_json() for name, cost in costs.items()} for title, (_, costs) in runs.items()}
        given.out.write_text(json.dumps(found, indent=1))


def measure(kind: type[Subject], count: int, given: argparse.Namespace) -> dict[str, Cost]:
    """One operator and one number of objects, on a new control plane."""
    with temporary_control_plane(audit=True) as cluster, tempfile.TemporaryDirectory(prefix="epd-bench-") as temporary:
        extra = (given.lws.resolve(),) if kind is Lws else ()
        subject = kind(cluster.kubectl, Path(temporary), *extra)
        subject.install()
        with _kubelet(cluster):
            subject.start()
            try:
                return asyncio.run(_measure(subject, cluster, count, given))
            finally:
                subject.stop()


async def _measure(subject: Subject, cluster: LocalCluster, count: int, given: argparse.Namespace) -> dict[str, Cost]:
    audit = AuditLog(cluster.layout.audit_log, cluster.kubectl)
    async with Rest(cluster.kubectl.kubeconfig, "bench-driver") as rest:
        return await Measurement(
            subject,
            rest,
            audit,
            count,
            replicas=given.replicas,
            idle_seconds=given.idle,
            changes=min(given.changes, count),
            limit=given.limit,
            profiler=given.profiler,
        ).run()


@contextlib.contextmanager
def _kubelet(cluster: LocalCluster) -> Iterator[None]:
    """A node with room for everything, in a process of its own."""
    command = [sys.executable, "-m", "hack.cluster.testkubelet", f"--kubeconfig={cluster.kubectl.kubeconfig}"]
    with subprocess.Popen([*command, f"--gpus={GPUS}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            if process.stdout is None or b"ready" not in process.stdout.readline():
                raise RuntimeError("the test kubelet does not start")
            yield
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
