"""Decisions become requests: strangers are left alone, and nothing is done for an object that went."""

from collections.abc import Callable
from typing import Any

import pytest

from epd_operator.api.conditions import Reason
from epd_operator.cluster.errors import ApiError
from epd_operator.cluster.resources import CONFIG_MAPS, CONTROLLER_REVISIONS, SECRETS, SERVICES, Object
from epd_operator.controller.actions import Action, Apply, Keep, MakeSecret, Remove
from epd_operator.controller.execute import Executor
from epd_operator.controller.world import World
from tests.unit.cluster.memory import MemoryCluster

OWNER = {"kind": "EPDDeployment", "name": "v", "uid": "mine", "controller": True}


def body(kind: str, name: str = "v-proxy", owner: Object | None = None, **fields: Any) -> Object:
    labels = {"app.kubernetes.io/instance": "v"}
    metadata = {"name": name, "namespace": "n", "labels": labels, "ownerReferences": [owner or OWNER]}
    return {"kind": kind, "metadata": metadata, **fields}


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
def world(cluster: MemoryCluster) -> World:
    return World(cluster, (), lambda key, after: None)


Run = Callable[..., Any]


@pytest.fixture
def run(cluster: MemoryCluster, world: World) -> Run:
    executor = Executor(cluster, world, lambda: b"secret")

    async def execute(*actions: Action, present: bool = True) -> Any:
        return await executor.execute(actions, lambda: present)

    return execute


async def test_keys_are_made_once_and_never_again(cluster: MemoryCluster, run: Run) -> None:
    action = MakeSecret(body("Secret", "v-uuid-key"))
    await run(action)
    first = cluster.objects[SECRETS.path("n", "v-uuid-key")]
    assert first["data"] == {"key": "c2VjcmV0"}
    assert await run(action) == (True, None, None)
    assert cluster.objects[SECRETS.path("n", "v-uuid-key")] is first


async def test_a_child_is_right_after_it_was_applied(world: World, run: Run) -> None:
    await run(Apply(SERVICES, body("Service"), "digest", None))
    child = world.children_of(("n", "v"))["Service", "v-proxy"]
    assert (child.right_as, child.body) == ("digest", None)


@pytest.mark.parametrize(
    ("owner", "reason", "passing"),
    [
        (None, Reason.NAME_TAKEN, False),
        ({"kind": "Other", "name": "o", "uid": "o", "controller": True}, Reason.NAME_TAKEN, False),
        ({**OWNER, "uid": "former"}, Reason.WAITING_FOR_DELETION, True),
    ],
)
async def test_a_strangers_object_is_not_touched(
    cluster: MemoryCluster,
    run: Run,
    owner: Object | None,
    reason: Reason,
    passing: bool,
) -> None:
    theirs = {"metadata": {"name": "v-proxy", "namespace": "n", "ownerReferences": [owner] if owner else []}}
    before = await cluster.create(CONFIG_MAPS, theirs)
    _, _, problem = await run(Apply(CONFIG_MAPS, body("ConfigMap"), "d", None))
    assert (problem.reason, problem.passing) == (reason, passing)
    assert await cluster.get(CONFIG_MAPS, "n", "v-proxy") == before


async def test_an_own_object_that_was_not_seen_is_applied(cluster: MemoryCluster, run: Run) -> None:
    await cluster.create(CONFIG_MAPS, body("ConfigMap", data={"a": "1"}))
    _, _, problem = await run(Apply(CONFIG_MAPS, body("ConfigMap", data={"a": "2"}), "d", None))
    assert problem is None
    assert (await cluster.get(CONFIG_MAPS, "n", "v-proxy"))["data"] == {"a": "2"}


async def test_a_rendering_that_was_kept_by_one_cut_off_is_taken(cluster: MemoryCluster, run: Run) -> None:
    revision = body("ControllerRevision", "v-1", data={"spec": {}}, revision=1)
    await cluster.create(CONTROLLER_REVISIONS, revision)
    _, kept, problem = await run(Keep(revision))
    assert (kept.name, problem) == ("v-1", None)


async def test_one_of_a_former_object_is_waited_for(cluster: MemoryCluster, run: Run) -> None:
    former = body("ControllerRevision", "v-1", {**OWNER, "uid": "former"}, data={}, revision=1)
    await cluster.create(CONTROLLER_REVISIONS, former)
    _, kept, problem = await run(Keep(body("ControllerRevision", "v-1", data={}, revision=1)))
    assert (kept, problem.reason) == (None, Reason.WAITING_FOR_DELETION)


async def test_what_is_gone_need_not_be_removed(cluster: MemoryCluster, run: Run) -> None:
    assert await run(Remove(SERVICES, "n", "x", "u")) == (True, None, None)
    assert cluster.requests == [("delete", SERVICES.path("n", "x"))]


async def test_nothing_is_written_for_an_object_that_went(cluster: MemoryCluster, run: Run) -> None:
    assert await run(MakeSecret(body("Secret")), present=False) == (False, None, None)
    assert cluster.requests == []


async def test_a_refusal_is_told_with_the_servers_words_and_ends_it(cluster: MemoryCluster, run: Run) -> None:
    cluster.failing = [ApiError(403, "Forbidden", "exceeded quota: few")]
    wrote, _, problem = await run(
        Apply(SERVICES, body("Service"), "d", None), Apply(SERVICES, body("Service", "other"), "d", None)
    )
    assert wrote
    assert (problem.reason, problem.message) == (Reason.API_REFUSED, "Service v-proxy: exceeded quota: few")
    assert len(cluster.requests) == 1


async def test_the_refusals_of_an_ending_namespace_are_told_from_others(cluster: MemoryCluster, run: Run) -> None:
    message = "unable to create new content in namespace n because it is being terminated"
    cluster.failing = [ApiError(403, "Forbidden", message, causes=("NamespaceTerminating",))]
    _, _, problem = await run(Apply(SERVICES, body("Service"), "d", None))
    assert (problem.ending, problem.passing) == (True, False)


@pytest.mark.parametrize("error", [ApiError(503, "", "x"), ApiError(429, "TooManyRequests", "x")])
async def test_trouble_that_passes_is_raised(cluster: MemoryCluster, run: Run, error: ApiError) -> None:
    cluster.failing = [error]
    with pytest.raises(ApiError):
        await run(Apply(SERVICES, body("Service"), "d", None))
