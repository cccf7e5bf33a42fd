"""The test kubelet on a thread of its own, for tests that are not asynchronous themselves."""

import asyncio
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hack.cluster.errors import ClusterError
from hack.cluster.rest import Rest
from hack.cluster.testkubelet.fate import Fate
from hack.cluster.testkubelet.kubelet import USER_AGENT, Kubelet
from hack.cluster.testkubelet.node import NodeSpec

CALL_SECONDS = 30


class KubeletThread:
    """A kubelet that runs while the context lasts. Its nodes go with it."""

    def __init__(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), name="test-kubelet")
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._nodes: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(CALL_SECONDS)
        if self._failure is not None:
            raise ClusterError(f"the test kubelet does not start: {self._failure}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self._nodes):
            self.remove_node(name)
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def add_node(self, spec: NodeSpec) -> None:
        """Register a node, ready for pods when this returns."""
        self._call(self._kubelet.add_node(spec))
        self._nodes.append(spec.name)

    def set_resources(self, name: str, resources: Mapping[str, int]) -> None:
        """Change how much of some extended resources a node offers."""
        self._call(self._kubelet.set_resources(name, resources))

    def remove_node(self, name: str) -> None:
        """Take a node away, and its pods with it."""
        self._call(self._kubelet.remove_node(name))
        self._nodes.remove(name)

    def set_fate(self, namespace: str, labels: Mapping[str, str], fate: Fate) -> None:
        """Change what happens to the pods with all of these labels, those that are there and those that come."""
        self._loop.call_soon_threadsafe(self._kubelet.add_rule, namespace, labels, fate)

    def clear_fates(self, namespace: str) -> None:
        """Let the pods of a namespace recover."""
        self._loop.call_soon_threadsafe(self._kubelet.clear_rules, namespace)

    def _call(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(CALL_SECONDS)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            async with Rest(self._kubeconfig, USER_AGENT) as rest:
                self._kubelet = Kubelet(rest)
                running = asyncio.create_task(self._kubelet.run())
                self._ready.set()
                await self._stop.wait()
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
                await self._kubelet.close()
        except Exception as error:
            self._failure = error
        finally:
            self._ready.set()
