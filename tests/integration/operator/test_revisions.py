"""An operator that renders otherwise restarts nothing, on a real API server."""

import copy
from typing import Any

import pytest

from epd_operator.api.names import ANNOTATION_RENDER
from epd_operator.cluster.client import ApiServer
from epd_operator.cluster.resources import DEPLOYMENTS, Object
from epd_operator.controller import accept
from epd_operator.controller.kinds import EPD_DEPLOYMENTS
from epd_operator.manifests.render import render as render_objects
from epd_operator.plan.plan import Plan
from hack.cluster.access import Access
from tests.integration.operator.conftest import vision
from tests.integration.operator.inside import CutOff, Inside, api, is_ready, listing, until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("gpu_node")]


def render_otherwise(plan: Plan) -> list[Object]:
    """A later operator's templates."""
    objects = copy.deepcopy(render_objects(plan))
    for body in objects:
        if body["kind"] == "Deployment":
            body["spec"]["template"]["metadata"]["annotations"]["rendered-by"] = "a-later-operator"
    return objects


async def templates(server: ApiServer, namespace: str) -> dict[str, Any]:
    found = await listing(server, DEPLOYMENTS, namespace)
    return {body["metadata"]["name"]: body["spec"]["template"] for body in found}


async def test_an_upgrade_restarts_nothing_until_asked(
    cluster: Access, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ready() -> bool:
        return await is_ready(server, namespace, "vision")

    async def patch(body: Object) -> None:
        await server.patch(EPD_DEPLOYMENTS, namespace, "vision", body)

    async with api(cluster.kubeconfig) as server:
        body = vision(operatorClass="c")
        body["metadata"]["namespace"] = namespace
        await server.create(EPD_DEPLOYMENTS, body)
        async with Inside(CutOff(server), namespace, "c"):
            await until("ready", ready)
        before = await templates(server, namespace)
        monkeypatch.setattr(accept, "render", render_otherwise)
        later = CutOff(server)
        async with Inside(later, namespace, "c") as inside:

            async def looked() -> bool:
                return bool(inside.operator.world.instance((namespace, "vision"))) and inside.operator.queue.idle

            await until("the later operator looked", looked)
            assert later.count == 0
            await patch({"spec": {"encode": {"replicas": 3}}})
            await until("ready", ready)
            assert await templates(server, namespace) == before
            await patch({"spec": {"decode": {"env": [{"name": "A", "value": "1"}]}}})
            await until("ready", ready)
            after = await templates(server, namespace)
            assert [name.split("-")[1] for name in after if after[name] != before.get(name)] == ["decode"]
            await patch({"metadata": {"annotations": {ANNOTATION_RENDER: "2026-11"}}})

            async def all_anew() -> bool:
                found = await templates(server, namespace)
                return all("rendered-by" in template["metadata"]["annotations"] for template in found.values())

            await until("all is rendered anew", all_anew)
            await until("ready", ready)
