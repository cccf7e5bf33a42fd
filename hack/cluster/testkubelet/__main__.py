"""A test kubelet as a process of its own: `python -m hack.cluster.testkubelet --kubeconfig FILE --gpus 8`."""

import argparse
import asyncio
import contextlib
import os
import signal
from pathlib import Path

from hack.cluster.rest import Rest
from hack.cluster.testkubelet.fate import Fate
from hack.cluster.testkubelet.kubelet import USER_AGENT, Kubelet
from hack.cluster.testkubelet.node import NodeSpec


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m hack.cluster.testkubelet", description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, default=os.environ.get("KUBECONFIG"), help="default $KUBECONFIG")
    parser.add_argument("--nodes", type=int, default=1, help="how many (default 1)")
    parser.add_argument("--gpus", type=int, default=0, help="nvidia.com/gpu on each (default 0)")
    parser.add_argument("--ready-after", type=float, default=0, help="seconds from a pod's start to Ready (default 0)")
    given = parser.parse_args()
    if given.kubeconfig is None:
        parser.error("--kubeconfig FILE is missing, and $KUBECONFIG is not set")
    specs = [NodeSpec(f"test-{number}", {"nvidia.com/gpu": given.gpus}) for number in range(given.nodes)]
    asyncio.run(_serve(given.kubeconfig, specs, Fate(ready_after=given.ready_after)))


async def _serve(kubeconfig: Path, specs: list[NodeSpec], default: Fate) -> None:
    """Run until SIGTERM or SIGINT, then take the nodes away."""
    async with Rest(kubeconfig, USER_AGENT) as rest:
        kubelet = Kubelet(rest, default)
        running = asyncio.create_task(kubelet.run())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, running.cancel)
        for spec in specs:
            await kubelet.add_node(spec)
        print("test kubelet ready", flush=True)
        with contextlib.suppress(asyncio.CancelledError):
            await running
        for spec in specs:
            await kubelet.remove_node(spec.name)
        await kubelet.close()


if __name__ == "__main__":
    main()
