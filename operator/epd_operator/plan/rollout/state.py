"""What the rollout planner is told: counts, settings and elapsed times, as the caller observed them.

Counts are instances (pods), times are seconds. There is no clock: whatever depends on time comes as data.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from epd_operator.api.role import Role
from epd_operator.api.rollout import RolloutStrategy


@dataclass(frozen=True, slots=True)
class RoleState:
    """One role of one revision: its Deployment and pods. A Deployment that does not exist is all zeros."""

    replicas: int = 0
    """spec.replicas."""
    ready: int = 0
    """Pods that serve: status.availableReplicas, with minReadySeconds of engine/drain.py's ROUTING, so that every proxy
    knows a new instance before an old one goes for it."""
    sick: int = 0
    """Pods that do not get ready by waiting: crash-looping, without image or configuration, out of memory, or not
    schedulable. Never part of `ready`."""
    pods: int | None = None
    """Pods that exist and are not on their way out (status.replicas); None: as many as replicas."""
    terminating: int = 0
    """Pods on their way out and within their grace period: they still hold their devices. Where the API server does not
    say (status.terminatingReplicas, Kubernetes 1.35) 0 is right too: then new pods may wait for a device."""
    desired: int | None = None
    """What the revision's own spec asks for; matters only where the target has other roles. None: replicas."""
    answering: int = 0
    """Pods that are ready, be it for a moment only (status.readyReplicas): requests may be in them."""

    @property
    def occupied(self) -> int:
        """Pods that hold a device or will."""
        return max(self.replicas, self.replicas if self.pods is None else self.pods) + self.terminating

    def is_just(self, replicas: int) -> bool:
        """Whether so many pods are asked for, exist and serve, and no other is there but on its way out."""
        pods = self.replicas if self.pods is None else self.pods
        return self.replicas == pods == self.ready == replicas

    @property
    def gone(self) -> bool:
        """Whether nothing is left of it."""
        return self.occupied == 0

    @property
    def passing(self) -> int:
        """Instances that answer, for however long they have been ready, and are not about to go."""
        return min(max(self.ready, self.answering), self.replicas)

    @property
    def passable(self) -> bool:
        """Whether a request can pass the role, or need not."""
        return self.passing > 0 or not self.replicas

    @property
    def staying(self) -> int:
        """Ready instances that are not about to go."""
        return min(self.ready, self.replicas)

    @property
    def hopeful(self) -> int:
        """Instances that serve or may yet."""
        return max(self.replicas - self.sick, self.passing, 0)


@dataclass(frozen=True, slots=True)
class RevisionState:
    """One revision."""

    roles: Mapping[Role, RoleState]
    """Every role that the revision has by its own spec, also those with no replicas or no workload yet: one that is not
    named is not missed."""
    serves: bool = False
    """New requests go to it now, as the last step that was done said."""
    idle_seconds: int | None = None
    """How long ago it stopped getting new requests; None while it gets them, or if it never did."""

    @property
    def served(self) -> bool:
        """Whether it gets new requests or ever did."""
        return self.serves or self.idle_seconds is not None

    @property
    def drained(self) -> bool:
        """Whether nothing is left of it."""
        return all(role.gone for role in self.roles.values())


@dataclass(frozen=True, slots=True)
class RolloutState:
    """All revisions of a deployment, what is wanted, and under which rules."""

    target: str
    """Revision that the spec asks for; it need not exist yet."""
    desired: Mapping[Role, int]
    """Replicas of each role of the target: as written, or as its EPDRoleScale says; all 0 while suspended."""
    revisions: Mapping[str, RevisionState]
    """Every revision that has a workload left, the target's too if it has one."""
    strategy: RolloutStrategy = RolloutStrategy.PROPORTIONAL
    max_surge: int | str = 0
    """Count, or percentage of desired, rounded up. BlueGreen takes the devices twice, whatever stands here."""
    max_unavailable: int | str = 1
    """Count, or percentage of desired, rounded down; 1 where both come to 0."""
    paused: bool = False
    deadline_exceeded: bool = False
    """The rollout's last progress (a pod more of the target is ready, a pod less of an old revision exists) is longer
    ago than progressDeadlineSeconds. Never undoes anything: the old revision goes on serving."""
    leave_after: Mapping[Role, int] = field(default_factory=dict)
    """Seconds from a revision's last new request until instances of a role may leave: `leave_after(plan)`."""
