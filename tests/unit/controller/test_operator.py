"""What is left for a calmer moment is looked at again when that has come, whatever became of the others."""

import contextlib
from typing import Any

import pytest

from epd_operator.cluster.errors import ApiError
from epd_operator.controller.operator import Operator
from epd_operator.controller.settings import Settings
from tests.unit.cluster.memory import MemoryCluster
from tests.unit.controller.seen import instance

LEFT, OTHER = ("ns", "left"), ("ns", "v")


def deployment(status: dict[str, Any]) -> dict[str, Any]:
    """Of an object, with what its controller said of it."""
    metadata = {
        "name": "v-decode",
        "namespace": "ns",
        "uid": "uid-of-decode",
        "generation": 1,
        "resourceVersion": str(10 + len(status)),
        "labels": {"app.kubernetes.io/instance": "v", "app.kubernetes.io/managed-by": "epd-operator"},
    }
    return {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": 1}, "status": status}


@pytest.fixture
async def operator() -> Operator:
    operator = Operator(MemoryCluster(), Settings())
    operator.reconciler.postponed.add(LEFT)
    return operator


async def test_it_waits_while_another_object_has_not_begun(operator: Operator) -> None:
    operator.queue.add(("ns", "new"))
    await operator._work(OTHER)
    assert operator.reconciler.postponed == {LEFT}
    operator.queue.drop(("ns", "new"))
    await operator._work(OTHER)
    assert not operator.reconciler.postponed
    assert LEFT in operator.queue._due


async def test_it_waits_for_deployments_that_their_controller_has_not_seen(operator: Operator) -> None:
    deployments = operator.world.children["Deployment", None]
    deployments.feed(deployment({}))
    await operator._work(OTHER)
    assert operator.reconciler.postponed == {LEFT}
    deployments.feed(deployment({"observedGeneration": 1}))
    await operator._work(OTHER)
    assert not operator.reconciler.postponed


async def test_it_does_not_wait_for_a_deployment_that_is_gone(operator: Operator) -> None:
    deployments = operator.world.children["Deployment", None]
    deployments.feed(deployment({}))
    deployments.forget(deployment({}))
    await operator._work(OTHER)
    assert not operator.reconciler.postponed


async def test_one_that_fails_holds_nobody_up(operator: Operator) -> None:
    cluster = operator.cluster
    assert isinstance(cluster, MemoryCluster)
    operator.world.instances.feed(instance())
    operator.world.doubted.add(OTHER)
    cluster.failing.append(ApiError(500, "InternalError", "no"))
    operator.queue.drop(OTHER)
    with contextlib.suppress(ApiError):
        await operator._work(OTHER)
    assert not cluster.failing
    assert not operator.reconciler.postponed
