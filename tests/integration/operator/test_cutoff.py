"""Cut off after its n-th request, for every n, the operator goes on where it was, and leaves nothing behind."""

import asyncio
import itertools
import json
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from epd_operator.cluster import resources
from epd_operator.cluster.client import ApiServer
from epd_operator.cluster.errors import ApiError
from epd_operator.cluster.resources import Object, Resource
from epd_operator.controller.kinds import CHILDREN, EPD_DEPLOYMENTS, ROLE_SCALES
from hack.cluster.access import Access
from tests.integration.operator.conftest import vision
from tests.integration.operator.inside import CutOff, Inside, api, is_ready, listing, until
from tests.integration.operator.objects import bare

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("gpu_node")]

LANES = 4
"""Objects that are tried at the same time."""
KINDS: tuple[Resource, ...] = (*CHILDREN.values(), ROLE_SCALES, resources.SECRETS, resources.CONTROLLER_REVISIONS)
QUICK = {"drainTimeoutSeconds": 1}
FIRST = {
    "encode": {"scaling": {"mode": "External"}, **QUICK},
    "decode": {"replicas": 1, **QUICK},
    "proxy": {"replicas": 1},
}
SECOND = {
    "encode": {"replicas": 1, **QUICK},
    "decode": {"replicas": 2, **QUICK},
    "engine": {"version": "0.33.0", "args": ["--max-model-len=4096"]},
    "proxy": {"replicas": 2, "service": {"port": 8080}},
}


class Lane:
    """One object of its own class that is made, changed and deleted under operators that are cut off."""

    def __init__(self, server: ApiServer, namespace: str, name: str) -> None:
        self.server = server
        self.namespace = namespace
        self.name = name
        self.at: int | None = None
        """Which of some specs it has."""

    async def write(self, spec: Mapping[str, Any]) -> None:
        """Create the object, or give it this spec."""
        body = vision(self.name, **spec, operatorClass=self.name)
        body["metadata"]["namespace"] = self.namespace
        try:
            await self.server.create(EPD_DEPLOYMENTS, body)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            live = await self.server.get(EPD_DEPLOYMENTS, self.namespace, self.name)
            gone = {name: None for name in live["spec"] if name not in body["spec"]}
            inner = {"encode": {"replicas": None, "scaling": None} | body["spec"]["encode"]}
            inner["engine"] = {"args": None} | body["spec"]["engine"]
            inner["proxy"] = {"service": None} | body["spec"]["proxy"]
            await self.server.patch(
                EPD_DEPLOYMENTS, self.namespace, self.name, {"spec": {**body["spec"], **gone, **inner}}
            )

    async def delete(self) -> None:
        """Delete the object; the garbage collector does the rest."""
        live = await self.server.get(EPD_DEPLOYMENTS, self.namespace, self.name)
        await self.server.delete(EPD_DEPLOYMENTS, self.namespace, self.name, live["metadata"]["uid"])

    async def ready(self) -> bool:
        """Whether the object is Ready as it stands."""
        return await is_ready(self.server, self.namespace, self.name)

    async def objects(self) -> dict[tuple[str, str], Object]:
        """All that belongs to the object, under names that do not hold its own; keys and histories by name only."""
        found: dict[tuple[str, str], Object] = {}
        for kind in KINDS:
            bodies = await listing(self.server, kind, self.namespace, f"app.kubernetes.io/instance={self.name}")
            for item in bodies:
                plain = _renamed(bare({"apiVersion": kind.api_version, "kind": kind.kind, **item}), self.name)
                name = plain["metadata"]["name"]
                if kind is resources.SECRETS:
                    plain = {"keys": sorted(plain["data"])}
                if kind is not resources.CONTROLLER_REVISIONS:
                    found[kind.kind, name] = plain
        return found

    async def revisions(self) -> int:
        """How many renderings are kept."""
        labels = f"app.kubernetes.io/instance={self.name}"
        return len(await listing(self.server, resources.CONTROLLER_REVISIONS, self.namespace, labels))

    async def empty(self) -> bool:
        """Whether nothing is left of it."""
        return not await self.objects() and not await self.revisions()

    async def run(self, after: int | None = None) -> int | None:
        """An operator until the object is Ready, or until it is cut off: then None, else how many requests it made."""
        cluster = CutOff(self.server, after)
        async with Inside(cluster, self.namespace, self.name) as inside:

            async def over() -> bool:
                return cluster.happened.is_set() or (inside.rests() and await self.ready())

            await until(f"{self.name} is ready, or cut off after {after}", over)
        return None if cluster.happened.is_set() else cluster.count


def _renamed(body: Object, name: str) -> Object:
    """The object as it would be of an object named `vision`; what is hashed from the name is left out."""
    text = json.dumps(body).replace(name, "vision")
    text = re.sub(r"(encode|prefill|decode)-[0-9a-f]{8}", r"\1-R", text)
    text = re.sub(r'("epd.dev/(revision|template-hash)": )"[0-9a-f]+"', r'\1"R"', text)
    renamed: Object = json.loads(re.sub(r"/vision/[0-9a-f]{8}", "/vision/R", text))
    return renamed


async def every_place(cluster: Access, namespace: str, trial: Callable[[Lane, int], Coroutine[Any, Any, bool]]) -> int:
    """Run a trial for 1, 2, 3 ... requests until one was not cut off, some at a time. Returns how many there were."""
    numbers = itertools.count(1)
    through = asyncio.Event()

    async def lane(server: ApiServer, which: int) -> int:
        done, own = 0, Lane(server, namespace, f"lane{which}")
        while not through.is_set():
            done += 1
            if not await trial(own, next(numbers)):
                through.set()
        return done

    async with api(cluster.kubeconfig) as server:
        return sum(await asyncio.gather(*(lane(server, which) for which in range(LANES))))


async def reference(cluster: Access, namespace: str, spec: Mapping[str, Any]) -> dict[tuple[str, str], Object]:
    """What a spec becomes when nothing goes wrong."""
    async with api(cluster.kubeconfig) as server:
        lane = Lane(server, namespace, "reference")
        await lane.write(spec)
        await lane.run()
        objects = await lane.objects()
        await lane.delete()
        await until("the reference is gone", lane.empty)
    return objects


async def test_in_a_creation(cluster: Access, namespace: str) -> None:
    expected = await reference(cluster, namespace, FIRST)

    async def trial(lane: Lane, after: int) -> bool:
        await lane.write(FIRST)
        cut = await lane.run(after) is None
        await lane.run()
        assert await lane.objects() == expected, f"cut off after {after} requests"
        assert await lane.revisions() == 1
        await lane.delete()
        await until("all is gone", lane.empty)
        return cut

    assert await every_place(cluster, namespace, trial) > 20


@pytest.mark.usefixtures("no_routing")
async def test_in_a_rollout_and_its_rollback(cluster: Access, namespace: str) -> None:
    """Each second rollout is taken back where it was cut off."""
    expected = [await reference(cluster, namespace, spec) for spec in (FIRST, SECOND)]

    async def trial(lane: Lane, after: int) -> bool:
        """To the other spec: a new revision, replicas, scaling on or off, the proxy."""
        if lane.at is None:
            await lane.write(FIRST)
            await lane.run()
            lane.at = 0
        await lane.write((FIRST, SECOND)[1 - lane.at])
        cut = await lane.run(after) is None
        if after % 2:
            lane.at = 1 - lane.at
        else:
            await lane.write((FIRST, SECOND)[lane.at])
        await lane.run()
        assert await lane.objects() == expected[lane.at], f"cut off after {after} requests"
        assert await lane.revisions() <= 2
        return cut

    assert await every_place(cluster, namespace, trial) > 30


async def test_in_a_deletion(cluster: Access, namespace: str) -> None:
    async def trial(lane: Lane, after: int) -> bool:
        """Deleted where the operator was cut off, half made; then it starts again."""
        await lane.write(FIRST)
        cut = await lane.run(after) is None
        cluster = CutOff(lane.server)
        async with Inside(cluster, lane.namespace, lane.name):
            await lane.delete()
            await asyncio.sleep(0.5)  # one request may be on its way; the garbage collector takes what it made
            await until(f"all is gone, cut off after {after}", lane.empty)
            requests = cluster.count
            await asyncio.sleep(1)
            assert (await lane.empty(), cluster.count) == (True, requests)
        return cut

    assert await every_place(cluster, namespace, trial) > 20
