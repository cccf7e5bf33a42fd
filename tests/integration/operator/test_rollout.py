"""Rollouts on a real API server with its controllers: each strategy, its trouble, and the bounds at every moment."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from epd_operator.api import names
from epd_operator.cluster.client import ApiServer
from epd_operator.cluster.resources import DEPLOYMENTS, SERVICES, Object, Resource
from epd_operator.controller.kinds import EPD_DEPLOYMENTS, ROLE_SCALES
from hack.cluster.access import Access
from hack.cluster.testkubelet.fate import FateKind
from tests.integration.operator.conftest import vision
from tests.integration.operator.history import History
from tests.integration.operator.inside import CutOff, Inside, api, is_ready, listing, until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("gpu_node", "quick_routing")]

SLICES = Resource("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
LONGER = {"engine": {"version": "0.33.0", "args": ["--max-model-len=4096"]}}
BEFORE = {"engine": {"version": "0.33.0", "args": None}}
NEVER = {"metadata": {"annotations": {"test-kubelet/fate": FateKind.UNREADY}}}
DESIRED = {"encode": 2, "decode": 3}


class Stage:
    """One object, an operator that looks after it, and all that happened."""

    def __init__(self, server: ApiServer, namespace: str, history: History, requests: CutOff) -> None:
        self.server = server
        self.namespace = namespace
        self.history = history
        self.requests = requests

    async def patch(self, **spec: Any) -> None:
        await self.server.patch(EPD_DEPLOYMENTS, self.namespace, "vision", {"spec": spec})

    async def status(self) -> Object:
        body = await self.server.get(EPD_DEPLOYMENTS, self.namespace, "vision")
        found: Object = body.get("status") or {}
        return found

    async def condition(self, kind: str) -> Object:
        conditions = (await self.status()).get("conditions") or []
        return next((condition for condition in conditions if condition["type"] == kind), {})

    async def ready(self) -> None:
        async def ask() -> bool:
            return await is_ready(self.server, self.namespace, "vision")

        await until("it is ready", ask)

    async def until_says(self, kind: str, reason: str) -> Object:
        async def ask() -> Object:
            body = await self.server.get(EPD_DEPLOYMENTS, self.namespace, "vision")
            found = await self.condition(kind)
            latest = found.get("observedGeneration") == body["metadata"]["generation"]
            return found if latest and found.get("reason") == reason else {}

        answer: Object = await until(f"{kind} says {reason}", ask)
        return answer

    async def replicas(self) -> dict[tuple[str, str], int]:
        """By role and revision."""
        found = await listing(self.server, DEPLOYMENTS, self.namespace)
        labels = {body["metadata"]["name"]: body["metadata"]["labels"] for body in found}
        return {
            (labels[body["metadata"]["name"]][names.LABEL_COMPONENT], revision): body["spec"]["replicas"]
            for body in found
            if (revision := labels[body["metadata"]["name"]].get(names.LABEL_REVISION))
        }

    async def settled(self, desired: dict[str, int]) -> str:
        """Wait until nothing but the target is left, as desired; returns its revision."""
        await self.ready()
        target = (await self.status())["targetRevision"]

        async def alone() -> bool:
            services = await listing(self.server, SERVICES, self.namespace)
            revisions = {body["metadata"]["labels"].get(names.LABEL_REVISION, target) for body in services}
            roles = (await self.status())["roles"]
            return (
                revisions == {target}
                and await self.replicas() == {(role, target): count for role, count in desired.items()}
                and {role: roles[role]["summary"] for role in roles} == {r: f"{n}/{n}" for r, n in desired.items()}
            )

        await until("only the target is left", alone)
        assert (await self.status())["currentRevision"] == target
        return str(target)

    async def underway(self) -> str:
        """Wait until the new revision has a ready instance of every role; returns the target."""

        async def ask() -> bool:
            status = await self.status()
            return all(role["updated"] for role in status["roles"].values()) and status["targetRevision"] != status.get(
                "currentRevision"
            )

        await until("the new revision is on its way", ask)
        return str((await self.status())["targetRevision"])


@contextlib.asynccontextmanager
async def staged(cluster: Access, namespace: str, **spec: Any) -> AsyncIterator[Stage]:
    """An object of two encoders and three decoders that is ready."""
    async with api(cluster.kubeconfig) as server, History(server, namespace) as history:
        body = vision(
            operatorClass="c",
            encode={"replicas": 2, "drainTimeoutSeconds": 1},
            decode={"replicas": 3, "drainTimeoutSeconds": 1},
            **spec,
        )
        body["metadata"]["namespace"] = namespace
        await server.create(EPD_DEPLOYMENTS, body)
        requests = CutOff(server)
        async with Inside(requests, namespace, "c"):
            stage = Stage(server, namespace, history, requests)
            await stage.ready()
            yield stage


@pytest.mark.parametrize(
    ("rollout", "surge", "unavailable"),
    [
        ({}, 0, 1),
        ({"maxSurge": 1, "maxUnavailable": 0}, 1, 0),
        ({"strategy": "BlueGreen"}, 3, 1),
        ({"strategy": "Recreate"}, 0, 3),
    ],
    ids=["Proportional", "surge", "BlueGreen", "Recreate"],
)
async def test_a_rollout_and_its_rollback_stay_within_bounds(
    cluster: Access, namespace: str, rollout: Object, surge: int, unavailable: int
) -> None:
    async with staged(cluster, namespace, rollout=rollout) as stage:
        old = await stage.settled(DESIRED)
        await stage.patch(**LONGER)
        new = await stage.settled(DESIRED)
        assert new != old
        await stage.patch(**BEFORE)
        assert await stage.settled(DESIRED) == old
        stage.history.check(DESIRED, surge=surge, unavailable=unavailable)
        stage.history.check_drains(1)
        orders = [now.open() for now, _ in stage.history.moments()]
        if rollout.get("strategy") == "Recreate":
            assert {old, new} not in orders
        else:
            assert set() not in orders[orders.index({old}) :]  # some revision serves all the time


async def test_a_rollout_can_be_rolled_back_half_way(cluster: Access, namespace: str) -> None:
    async with staged(cluster, namespace) as stage:
        old = await stage.settled(DESIRED)
        await stage.patch(**LONGER)
        await stage.underway()
        await stage.patch(**BEFORE)
        assert await stage.settled(DESIRED) == old
        stage.history.check(DESIRED, surge=0, unavailable=1)


async def test_a_new_target_half_way_replaces_both(cluster: Access, namespace: str) -> None:
    async with staged(cluster, namespace, rollout={"historyLimit": 1}) as stage:
        first = await stage.settled(DESIRED)
        await stage.patch(**LONGER)
        second = await stage.underway()
        await stage.patch(engine={"version": "0.33.0", "args": ["--max-model-len=2048"]})
        third = await stage.settled(DESIRED)
        assert len({first, second, third}) == 3
        stage.history.check(DESIRED, surge=0, unavailable=1)


async def test_a_broken_revision_stalls_while_the_old_one_serves(cluster: Access, namespace: str) -> None:
    quick = {"startupTimeoutSeconds": 10}  # the deadline is never below it
    rollout = {"progressDeadlineSeconds": 10}
    async with staged(cluster, namespace, rollout=rollout) as stage:
        await stage.patch(encode=quick, decode=quick)
        old = await stage.settled(DESIRED)
        await stage.patch(**LONGER, decode={"template": NEVER})
        stalled = await stage.until_says("Stalled", "ProgressDeadlineExceeded")
        status = await stage.status()
        assert status["currentRevision"] == old != status["targetRevision"]
        assert f"revision {old} goes on serving" in stalled["message"]
        assert f"vision-decode-{status['targetRevision']}" in stalled["message"]
        assert (await stage.condition("Available"))["status"] == "True"
        assert (await stage.condition("Reconciling")) == {}
        await asyncio.sleep(2)  # what was on its way
        made = stage.requests.count
        await asyncio.sleep(3)
        assert stage.requests.count == made  # it waits in peace
        await stage.patch(decode={"template": None})
        assert await stage.settled(DESIRED) != old
        assert await stage.condition("Stalled") == {}
        # The repair is a new template of the same revision, and its Deployment does not wait for a pod on its way out.
        stage.history.check(DESIRED, surge=1, unavailable=1)


async def test_a_paused_rollout_waits_and_still_scales(cluster: Access, namespace: str) -> None:
    async with staged(cluster, namespace) as stage:
        old = await stage.settled(DESIRED)
        await stage.patch(**LONGER)
        new = await stage.underway()
        await stage.patch(rollout={"paused": True})
        await stage.until_says("Ready", "Paused")
        await asyncio.sleep(2)  # what was on its way
        before = await stage.replicas()
        made = stage.requests.count
        await asyncio.sleep(3)
        assert await stage.replicas() == before
        assert stage.requests.count == made
        assert {revision for (_, revision), count in before.items() if count} == {old, new}
        await stage.patch(decode={"replicas": 6})

        async def scaled() -> bool:
            found = await stage.replicas()
            return sum(count for (role, _), count in found.items() if role == "decode") == 6

        await until("decode has six over both", scaled)
        await stage.patch(rollout={"paused": None})
        assert await stage.settled({"encode": 2, "decode": 6}) == new


async def test_one_that_is_paused_from_the_start_serves(cluster: Access, namespace: str) -> None:
    async with staged(cluster, namespace, rollout={"paused": True}) as stage:
        old = await stage.settled(DESIRED)

        async def paused() -> bool:
            found = await listing(stage.server, DEPLOYMENTS, namespace, f"{names.LABEL_REVISION}={old}")
            return all(body["spec"].get("paused") for body in found)

        await until("its Deployments are paused", paused)
        await stage.patch(**LONGER)
        await stage.until_says("Ready", "Paused")
        assert {revision for _, revision in await stage.replicas()} == {old}


async def test_scaling_amid_a_rollout_is_followed_by_nobody_else(cluster: Access, namespace: str) -> None:
    """Replicas in the spec, by an EPDRoleScale that is switched on half-way, and encode to 0 and back."""
    async with staged(cluster, namespace) as stage:
        await stage.settled(DESIRED)
        await stage.patch(**LONGER)
        await stage.underway()
        await stage.patch(encode={"replicas": None, "scaling": {"mode": "External"}}, decode={"replicas": 4})
        await stage.settled({"encode": 2, "decode": 4})
        scale = (await listing(stage.server, ROLE_SCALES, namespace))[0]
        assert scale["spec"]["replicas"] == 2
        await stage.patch(**BEFORE)
        await stage.underway()
        name = scale["metadata"]["name"]
        for count in (0, 1, 3):
            await stage.server.patch(ROLE_SCALES, namespace, name, {"spec": {"replicas": count}})
            await stage.settled({"encode": count, "decode": 4})
        deployments = await listing(stage.server, DEPLOYMENTS, namespace)
        writers = {
            entry["manager"]
            for body in deployments
            for entry in body["metadata"]["managedFields"]
            if "f:replicas" in entry["fieldsV1"].get("f:spec", {})
        }
        assert writers == {"epd-operator"}


async def test_a_template_change_rolls_one_role_by_its_deployment(cluster: Access, namespace: str) -> None:
    async with staged(cluster, namespace) as stage:
        old = await stage.settled(DESIRED)
        before = {pod for now, _ in stage.history.moments() for pod in now.pods}
        await stage.patch(decode={"env": [{"name": "SOME_SETTING", "value": "1"}]})
        assert await stage.settled(DESIRED) == old
        after = {pod for now, _ in stage.history.moments() for pod in now.pods}
        assert {pod.split("-")[1] for pod in after - before} == {"decode"}
        # A Deployment does not wait for a pod that is on its way out.
        stage.history.check(DESIRED, surge=1, unavailable=1)


async def test_endpoint_slices_say_what_the_service_says(cluster: Access, namespace: str) -> None:
    """The proxy reads slices: Kubernetes copies the label there, and takes it away again."""
    async with staged(cluster, namespace, rollout={"strategy": "BlueGreen"}) as stage:
        old = await stage.settled(DESIRED)

        async def closed() -> set[str]:
            found = await listing(stage.server, SLICES, namespace, f"{names.LABEL_TRAFFIC}=false")
            return {body["metadata"]["labels"][names.LABEL_REVISION] for body in found}

        assert await closed() == set()
        await stage.patch(**LONGER, encode={"template": NEVER})

        async def new_is_closed() -> bool:
            return await closed() == {(await stage.status())["targetRevision"]} != {old}

        await until("the new one is closed", new_is_closed)
        await stage.patch(encode={"template": None})
        await stage.settled(DESIRED)
        assert await closed() == set()
