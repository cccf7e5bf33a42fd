"""The operator process: everything put together, started in order, and ended together."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from epd_operator.cluster.api import Cluster
from epd_operator.cluster.client import ApiServer
from epd_operator.cluster.credentials import Credentials, load_credentials
from epd_operator.cluster.errors import ClusterError
from epd_operator.cluster.lease import Fenced, Leadership
from epd_operator.controller import kopf_setup
from epd_operator.controller.certificate_keeper import CertificateKeeper
from epd_operator.controller.health import serve_health
from epd_operator.controller.kinds import EPD_DEPLOYMENTS, ROLE_SCALES
from epd_operator.controller.metrics import LEADER, REGISTRY, QueueCollector
from epd_operator.controller.queue import WorkQueue
from epd_operator.controller.reconcile import Reconciler
from epd_operator.controller.settings import Settings
from epd_operator.controller.world import World

log = structlog.get_logger()


class Operator:
    """Queue, picture of the cluster and reconciler over one cluster interface; no Kopf and no leadership yet."""

    def __init__(self, cluster: Cluster, settings: Settings) -> None:
        self.cluster = cluster
        self.settings = settings
        self.queue = WorkQueue(self._work, settings.workers)
        self.world = World(cluster, settings.namespaces, self.queue.add)
        self.reconciler = Reconciler(
            cluster,
            self.world,
            settings=settings.plan,
            operator_class=settings.operator_class,
            identity=settings.identity,
            calm=self._calm,
        )

    async def _work(self, key: tuple[str, str]) -> float | None:
        try:
            again = await self.reconciler(key)
        finally:  # also the last that began may have failed
            self._resume()
        if self.world.instance(key) is None:
            self.queue.drop(key)
        return again

    def _resume(self) -> None:
        """Look again at what was left for a calmer moment, if it is one."""
        postponed = self.reconciler.postponed
        if postponed and self._calm():
            for key in postponed:
                self.queue.add(key)
            postponed.clear()

    def _calm(self) -> bool:
        """Whether all objects have begun, and their Deployments too."""
        return not self.queue.beginning and not self.world.unbegun

    async def work(self) -> None:
        """Reconcile for ever, once the children are known."""
        await self.world.synced()
        log.info("the cluster was read")
        await self.queue.run()

    async def resync(self) -> None:
        """Now and then, compare the list of objects with what watches told, and look at each."""
        while True:
            await asyncio.sleep(self.settings.resync_seconds)
            try:
                await self.world.relist()
            except ClusterError as error:
                log.warning("resync failed; trying again", error=str(error))
                continue
            for number, instance in enumerate(self.world.instances):
                metadata = instance.body["metadata"]
                self.queue.add((metadata["namespace"], metadata["name"]), number * 0.01)


async def run_operator(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT. Raises ClusterError: no API server, or the leadership is lost."""
    credentials = await load_credentials(settings.kubeconfig, settings.context)
    async with ApiServer(credentials) as api:
        leadership = Leadership(
            api,
            settings.lease_namespace or credentials.namespace,
            _lease_name(settings),
            settings.identity,
            duration=settings.lease_seconds,
        )
        cluster: Cluster = Fenced(api, lambda: leadership.leads) if settings.leader_election else api
        operator = Operator(cluster, settings)
        process = _Process(settings, credentials, leadership, operator)
        await process.run()


def _lease_name(settings: Settings) -> str:
    return f"{settings.lease_name}-{settings.operator_class}" if settings.operator_class else settings.lease_name


class _Process:
    def __init__(
        self, settings: Settings, credentials: Credentials, leadership: Leadership, operator: Operator
    ) -> None:
        self.settings = settings
        self.credentials = credentials
        self.leadership = leadership
        self.operator = operator
        self.stop = asyncio.Event()
        self._working = False

    async def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self.stop.set)
        queue = self.operator.queue
        REGISTRY.register(collector := QueueCollector(lambda: float(queue.depth), lambda: queue.age))
        health = None
        try:
            if self.settings.port:
                health = await serve_health(
                    self.settings.address, self.settings.port, live=self._live, ready=self._ready, registry=REGISTRY
                )
            if await self._lead():
                self._working = True
                await self._operate()
        finally:
            LEADER.set(0)
            REGISTRY.unregister(collector)
            if self.settings.leader_election:
                await self.leadership.release()
            if health is not None:
                await health.cleanup()

    async def _lead(self) -> bool:
        """Wait for the Lease. False: the process was asked to stop before."""
        if self.settings.leader_election:
            log.info("waiting for the lease", identity=self.settings.identity)
            stopped = await _first(self.leadership.acquire, self.stop.wait)
            if stopped:
                return False
        LEADER.set(1)
        return True

    async def _operate(self) -> None:
        parts: list[Callable[[], Coroutine[Any, Any, Any]]] = [
            self.operator.world.run,
            self.operator.work,
            self.operator.resync,
        ]
        if self.settings.leader_election:
            parts.append(self.leadership.keep)
        if self.settings.webhook_configuration is not None:
            keeper = CertificateKeeper(
                self.operator.cluster,
                self.credentials.namespace,
                self.settings.webhook_secret,
                self.settings.webhook_configuration,
                self.settings.webhook_names,
            )
            parts.append(keeper.run)
        registry = kopf_setup.new_registry(self.credentials)
        loop = asyncio.get_running_loop()
        kopf_setup.watch(registry, EPD_DEPLOYMENTS, self.operator.world.instances, loop)
        kopf_setup.watch(registry, ROLE_SCALES, self.operator.world.scales, loop)
        kopf = kopf_setup.KopfThread(registry, self.settings.namespaces)
        try:
            await _first(*parts, kopf.run, self.stop.wait)
        finally:
            kopf.stop()

    def _live(self) -> str:
        return self.operator.queue.stuck if self._working else ""

    def _ready(self) -> str:
        """Ready is who stands by for a Lease that it can read, and who leads and knows the cluster."""
        if self.stop.is_set():
            return "it was asked to stop"
        if self._working:
            return "; ".join(self.operator.world.unread())
        return self.leadership.trouble


async def _first(*parts: Callable[[], Coroutine[Any, Any, Any]]) -> bool:
    """Run until one part ends, then end the others. Returns whether the last one did. Raises what a part raised."""
    tasks = [asyncio.create_task(part()) for part in parts]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
        return tasks[-1] in done
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
