"""A cluster as far as a rollout sees it: pods that start, get ready, fall sick and go, as chance has it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from random import Random

from epd_operator.api.role import Role
from epd_operator.plan.rollout import RevisionState, RoleState, RolloutState, Step

MINUTE = 60


@dataclass
class Pods:
    """The Deployment of one role of one revision and its pods."""

    replicas: int = 0
    ready: int = 0
    fresh: int = 0
    """Ready, for less than minReadySeconds."""
    starting: int = 0
    sick: int = 0
    terminating: int = 0
    desired: int = 0

    @property
    def pods(self) -> int:
        return self.ready + self.fresh + self.starting + self.sick

    def follow(self) -> None:
        """What the ReplicaSet controller does: make pods, or remove them: sick, starting, fresh, ready."""
        self.starting += max(0, self.replicas - self.pods)
        for kind in ("sick", "starting", "fresh", "ready"):
            fewer = min(max(0, self.pods - self.replicas), getattr(self, kind))
            setattr(self, kind, getattr(self, kind) - fewer)
            self.terminating += fewer

    def drift(self, chance: Random, *, bad: bool) -> None:
        """Let some of that happen, and some pods leave or start; `bad` ones fail instead of getting ready."""
        if chance.random() < 0.7:
            self.follow()
        if chance.random() < 0.5:
            self.terminating -= chance.randint(0, self.terminating)
        if chance.random() < 0.5:
            moved = chance.randint(0, self.starting)
            self.starting -= moved
            if bad:
                self.sick += moved
            else:
                self.fresh += moved
        if chance.random() < 0.7:
            moved = chance.randint(0, self.fresh)
            self.fresh -= moved
            self.ready += moved

    def settle(self, *, bad: bool) -> None:
        """All of that happens."""
        self.follow()
        self.terminating = 0
        healthy, sick = (0, self.sick + self.starting) if bad else (self.sick + self.starting, 0)
        self.ready += self.fresh + healthy
        self.fresh, self.starting, self.sick = 0, 0, sick

    @property
    def answering(self) -> int:
        return self.ready + self.fresh

    def state(self) -> RoleState:
        return RoleState(
            self.replicas, self.ready, self.sick, self.pods, self.terminating, self.desired, self.answering
        )


@dataclass
class World:
    """All revisions; `bad` ones have pods that never get ready in some role."""

    state: RolloutState
    revisions: dict[str, dict[Role, Pods]]
    serves: set[str] = field(default_factory=set)
    idle: dict[str, int] = field(default_factory=dict)
    bad: set[tuple[str, Role]] = field(default_factory=set)

    def observe(self) -> RolloutState:
        revisions = {
            name: RevisionState(
                {role: pods.state() for role, pods in roles.items()}, name in self.serves, self.idle.get(name)
            )
            for name, roles in self.revisions.items()
        }
        return replace(self.state, revisions=revisions)

    def cells(self) -> Iterator[tuple[str, Role, Pods]]:
        for name, roles in self.revisions.items():
            for role, pods in roles.items():
                yield name, role, pods

    def route(self, step: Step) -> None:
        for name in self.serves - set(step.serving):
            self.idle[name] = 0
        self.serves = set(step.serving)
        for name in self.serves:
            self.idle.pop(name, None)

    def apply(self, step: Step, chance: Random | None = None) -> None:
        """Do the step, or with chance a part of it, as an operator that is killed half-way."""
        if chance is None or chance.random() < 0.9:
            self.route(step)
        for name, roles in step.replicas.items():
            for role, replicas in roles.items():
                pods = self.revisions.setdefault(name, {}).setdefault(role, Pods(desired=replicas))
                if name == self.state.target:
                    pods.desired = self.state.desired[role]
                if chance is None or chance.random() < 0.8:
                    pods.replicas = replicas
        for name in step.deletable:
            if chance is None or chance.random() < 0.5:
                del self.revisions[name]

    def sleep(self, seconds: int) -> None:
        for name in self.idle:
            self.idle[name] += seconds

    def happen(self, chance: Random, *, calm: bool) -> None:
        """Let a random part of the cluster move; when calm, nothing fails."""
        self.sleep(chance.choice((0, 1, 10, MINUTE, 3 * MINUTE)))
        for name, role, pods in self.cells():
            pods.drift(chance, bad=(name, role) in self.bad)
            if not calm and chance.random() < 0.05 and pods.ready:
                pods.ready -= 1
                pods.starting += 1
            if not calm and chance.random() < 0.03 and pods.ready:
                pods.ready -= 1
                pods.sick += 1
            if chance.random() < 0.1 and pods.sick and (name, role) not in self.bad:
                pods.sick -= 1
                pods.ready += 1

    def settle(self) -> None:
        """Everything that can happen without a failure happens, at once."""
        self.sleep(10 * MINUTE)
        for name, role, pods in self.cells():
            pods.settle(bad=(name, role) in self.bad)

    def totals(self) -> Mapping[Role, int]:
        """Pods that hold a device, by role."""
        totals: dict[Role, int] = {}
        for _, role, pods in self.cells():
            totals[role] = totals.get(role, 0) + max(pods.replicas, pods.pods) + pods.terminating
        return totals
