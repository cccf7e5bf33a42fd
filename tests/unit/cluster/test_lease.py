"""Leadership: one at a time, by the clock of each; given back, taken over, lost."""

import pytest

from epd_operator.cluster.errors import ApiError, NotLeading, Unreachable
from epd_operator.cluster.lease import Fenced, Leadership
from epd_operator.cluster.resources import CONFIG_MAPS, LEASES
from tests.unit.cluster.memory import MemoryCluster


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def cluster() -> MemoryCluster:
    return MemoryCluster()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def candidate(cluster: MemoryCluster, clock: Clock, identity: str) -> Leadership:
    return Leadership(cluster, "n", "lease", identity, retry=0.0, renew=0.0, clock=clock)


async def attempt(leadership: Leadership) -> bool:
    return await leadership._try()


async def test_the_first_leads_and_the_second_waits_for_its_silence(cluster: MemoryCluster, clock: Clock) -> None:
    first, second = (candidate(cluster, clock, name) for name in ("one", "two"))
    assert await attempt(first)
    assert not await attempt(second)
    clock.now += 10
    assert await attempt(first)  # renewed
    clock.now += 10
    assert not await attempt(second)  # sees the renewal only now
    clock.now += 14.9
    assert not await attempt(second)
    assert not first.leads  # by its own clock, before another can lead
    clock.now += 0.2
    assert await attempt(second)
    assert second.leads
    assert cluster.objects[LEASES.path("n", "lease")]["spec"]["leaseTransitions"] == 1


async def test_what_is_given_back_is_free_at_once(cluster: MemoryCluster, clock: Clock) -> None:
    first, second = (candidate(cluster, clock, name) for name in ("one", "two"))
    await first.acquire()
    await first.release()
    assert not first.leads
    await second.acquire()
    assert second.leads


async def test_a_leader_that_was_overtaken_gives_up(cluster: MemoryCluster, clock: Clock) -> None:
    first, second = (candidate(cluster, clock, name) for name in ("one", "two"))
    await first.acquire()
    assert not await attempt(second)
    clock.now += 16
    await second.acquire()
    with pytest.raises(NotLeading, match="two holds the lease n/lease"):
        await first.keep()
    assert not first.leads


async def test_trouble_is_borne_until_the_lease_runs_out(cluster: MemoryCluster, clock: Clock) -> None:
    leader = candidate(cluster, clock, "one")
    await leader.acquire()

    class Failing(MemoryCluster):
        tries = 0

        async def get(self, *_: object) -> dict[str, object]:
            self.tries += 1
            clock.now += 4
            raise Unreachable("no answer")

    leader.cluster = failing = Failing()
    with pytest.raises(NotLeading, match="could not be renewed"):
        await leader.keep()
    assert failing.tries == 4


async def test_a_write_of_somebody_who_does_not_take_it_is_borne(cluster: MemoryCluster, clock: Clock) -> None:
    leader = candidate(cluster, clock, "one")
    await leader.acquire()

    class Busy(MemoryCluster):
        async def patch(self, *_: object) -> dict[str, object]:
            clock.now += 6
            raise ApiError(409, "Conflict", "the object has been modified")

    busy = Busy()
    busy.objects = cluster.objects
    leader.cluster = busy
    with pytest.raises(NotLeading, match="could not be renewed: somebody else wrote it"):
        await leader.keep()
    assert clock.now >= 15  # only when it has run out


async def test_two_that_are_as_quick_do_not_both_lead(cluster: MemoryCluster, clock: Clock) -> None:
    second = candidate(cluster, clock, "two")
    cluster.failing = [ApiError(404, "NotFound", ""), ApiError(409, "AlreadyExists", "")]
    assert not await attempt(second)
    assert not second.leads


async def test_nothing_is_written_without_the_lease(cluster: MemoryCluster) -> None:
    leads = True
    fenced = Fenced(cluster, lambda: leads)
    body = {"metadata": {"name": "x", "namespace": "n"}}
    created = await fenced.create(CONFIG_MAPS, body)
    leads = False
    for write in (
        fenced.create(CONFIG_MAPS, body),
        fenced.apply(CONFIG_MAPS, body, force=True),
        fenced.patch(CONFIG_MAPS, "n", "x", {}),
        fenced.delete(CONFIG_MAPS, "n", "x", created["metadata"]["uid"]),
    ):
        with pytest.raises(NotLeading):
            await write
    assert await fenced.get(CONFIG_MAPS, "n", "x") == created
