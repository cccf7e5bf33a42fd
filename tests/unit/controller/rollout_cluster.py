"""A cluster of one object as the decider sees it, whose pods start, fail and go as chance has it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from epd_operator.api.conditions import Reason
from epd_operator.api.names import LABEL_COMPONENT
from epd_operator.api.role import Role
from epd_operator.cluster.resources import Object
from epd_operator.controller.accept import Acceptance
from epd_operator.controller.actions import Confirm
from epd_operator.controller.child import Child, keep_child
from epd_operator.controller.kinds import CHILDREN
from epd_operator.controller.pods import Pod, Trouble
from epd_operator.controller.traffic import keeps_traffic, traffic_of
from tests.unit.controller.seen import Small
from tests.unit.plan.rollout_world import Pods

STARTING, CRASHING = Trouble(Reason.STARTING, "starts"), Trouble(Reason.CRASH_LOOPING, "crashes")


class RolloutCluster(Small):
    """Every action is checked as it is done, so that an operator may be cut off after any."""

    def __init__(self, body: Object) -> None:
        super().__init__(body)
        self.counts: dict[str, Pods] = {}
        """By Deployment."""
        self._verdicts: dict[tuple[Any, ...], Acceptance] = {}

    def verdict(self) -> Acceptance:
        key = (self.body["metadata"]["generation"], *(kept.name for kept in self.renderings))
        if key not in self._verdicts:
            self._verdicts[key] = super().verdict()
        return self._verdicts[key]

    def cells(self) -> Iterator[tuple[str, Role, Pods]]:
        """Revision, role and pods of each Deployment of engines that is there, or was."""
        for name, pods in self.counts.items():
            _, role, revision = name.split("-")
            yield revision, Role(role), pods

    def occupied(self) -> dict[Role, int]:
        """Devices that are taken or asked for, by role."""
        found = dict.fromkeys(Role, 0)
        for _, role, pods in self.cells():
            found[role] += max(pods.replicas, pods.pods) + pods.terminating
        return found

    def ready(self, revision: str, role: Role) -> int:
        """Instances of a revision that serve."""
        return sum(pods.answering for name, each, pods in self.cells() if (name, each) == (revision, role))

    def open(self) -> set[str]:
        """Revisions that get new requests."""
        return {
            str(child.revision)
            for child in self.children.values()
            if keeps_traffic(child.resource.kind, child.labels.get(LABEL_COMPONENT, "")) and traffic_of(child).open
        }

    def part(self, chance: Random) -> bool:
        """Decide and do it, or with chance only a beginning of it. Returns whether something was written."""
        actions = self.decide().actions
        some = chance.randint(0, len(actions)) if chance.random() < 0.3 else len(actions)
        for action in actions[:some]:
            self.do(action)
            self._follow_specs()
        return any(not isinstance(action, Confirm) for action in actions)

    def restart(self) -> None:
        """The operator forgets what it knows, and reads all anew."""
        for key, child in list(self.children.items()):
            self.children[key] = keep_child(CHILDREN[key[0]], self.bodies[key], None)
            self.children[key].workload = child.workload

    def happen(self, chance: Random, *, bad: frozenset[tuple[str, Role]] = frozenset()) -> None:
        """Let a random part of the cluster move, and time pass."""
        self.now += timedelta(seconds=chance.choice((0, 1, 10, 60)))
        for revision, role, pods in self.cells():
            pods.drift(chance, bad=(revision, role) in bad)
        self.show()

    def settle_pods(self, *, bad: frozenset[tuple[str, Role]] = frozenset()) -> None:
        """All that can happen to pods happens."""
        self.now += timedelta(seconds=600)
        for revision, role, pods in self.cells():
            pods.settle(bad=(revision, role) in bad)
        self.show()

    def show(self) -> None:
        """What the API server would say of pods and Deployments."""
        self.pods = [pod for revision, role, pods in self.cells() for pod in self._pods(revision, role, pods)]
        for (kind, name), child in self.children.items():
            if kind == "Deployment" and child.workload is not None:
                pods = self.counts.get(name)
                wanted = child.workload.wanted
                total, ready, available = (pods.pods, pods.answering, pods.ready) if pods else (wanted, wanted, wanted)
                child.workload = replace(
                    child.workload, current=True, total=total, updated=total, ready=ready, available=available
                )

    def put(self, body: Object, *, owner: str = "uid") -> Child:
        child = super().put(body, owner=owner)
        self._follow_specs()
        return child

    def _follow_specs(self) -> None:
        for (kind, name), child in self.children.items():
            if kind == "Deployment" and child.revision is not None and child.workload is not None:
                self.counts.setdefault(name, Pods()).replicas = child.workload.wanted
        for name, pods in self.counts.items():
            if ("Deployment", name) not in self.children:
                pods.replicas = 0

    def _pods(self, revision: str, role: Role, pods: Pods) -> Iterator[Pod]:
        def pod(number: int, trouble: Trouble | None, *, deleting: bool = False) -> Pod:
            since = self.now.isoformat()
            ends = (self.now + timedelta(seconds=60)).isoformat() if deleting else ""
            name = f"{role}-{revision}-{number}"
            ready = trouble is None and not deleting
            return Pod("ns", name, name, 1, "v", role, revision, ready, deleting, trouble, since, ends)

        numbers = iter(range(10_000))
        yield from (pod(next(numbers), None) for _ in range(pods.answering))
        yield from (pod(next(numbers), STARTING) for _ in range(pods.starting))
        yield from (pod(next(numbers), CRASHING) for _ in range(pods.sick))
        yield from (pod(next(numbers), None, deleting=True) for _ in range(pods.terminating))
