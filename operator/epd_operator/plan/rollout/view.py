"""What a rollout state means: which revisions are complete, what each can carry, what may exist and be missing."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import cached_property

from epd_operator.api.bounds import Bounds
from epd_operator.api.role import Role
from epd_operator.plan.rollout.state import RevisionState, RoleState, RolloutState

NOTHING = RoleState()


class View:
    """One state, read-only, with the quantities of the formulas."""

    def __init__(self, state: RolloutState) -> None:
        self.state = state
        self.target = state.target
        self.desired = state.desired
        self.bounds = Bounds(state.max_surge, state.max_unavailable)
        self.revisions: dict[str, RevisionState] = {
            state.target: RevisionState({}),
            **state.revisions,
        }
        self.old = [name for name in self.revisions if name != state.target and not self.revisions[name].drained]
        """Old revisions of which something is left."""
        self._same_roles = {name: set(self.roles(name)) == set(self.desired) for name in self.revisions}
        self.text_only = False
        self.text_only = not any(self.complete(name) for name in self.revisions)
        """No revision has every role; then one that serves and lacks encoders only counts: it answers text."""

    def role(self, name: str, role: Role) -> RoleState:
        """One role of one revision, zeros where it does not exist."""
        return self.revisions[name].roles.get(role, NOTHING)

    def roles(self, name: str) -> Iterable[Role]:
        """The roles of a revision."""
        return self.desired if name == self.target else self.revisions[name].roles

    def same_roles(self, name: str) -> bool:
        """Whether the revision has the target's roles, so that instances of both stand for each other."""
        return self._same_roles[name]

    def whole(self, name: str, role: Role) -> int:
        """Instances of a role with which the revision carries everything.

        As desired now; in another topology, where an instance does other work, as the revision's own spec says.
        """
        if self.same_roles(name):
            return self.desired[role]
        counts = self.role(name, role)
        return max(counts.replicas, counts.desired or 0)

    def needed(self, name: str) -> list[Role]:
        """Roles without which the revision cannot serve."""
        revision = self.revisions[name]
        without = (
            {Role.ENCODE} if self.text_only and revision.serves and not self.role(name, Role.ENCODE).passing else ()
        )
        return [role for role in self.roles(name) if self.whole(name, role) > 0 and role not in without]

    def complete(self, name: str, ready: Mapping[Role, int] | None = None) -> bool:
        """Whether every role that is needed has an instance that is ready."""
        needed = self.needed(name)
        return bool(needed) and all(self._ready(name, role, ready) > 0 for role in needed)

    def answers(self, name: str) -> bool:
        """Whether a request can pass every role that is needed, be it through instances that just got ready."""
        return self.complete(name, {role: self.role(name, role).passing for role in self.roles(name)})

    def hopeless(self, name: str) -> bool:
        """Whether a role that is needed has no instance that serves or may yet."""
        needed = self.needed(name)
        return not needed or any(self.role(name, role).hopeful == 0 for role in needed)

    def unborn(self, name: str) -> bool:
        """Whether the revision never served and does not do so now: it has nothing to lose."""
        return not self.revisions[name].served and not self.complete(name)

    def share(self, name: str, ready: Mapping[Role, int] | None = None) -> Fraction:
        """What the revision can carry of everything, 0 to 1; the scarcest role decides."""
        if not self.complete(name, ready):
            return Fraction(0)
        return min(
            min(Fraction(self._ready(name, role, ready), self.whole(name, role)), Fraction(1))
            for role in self.needed(name)
        )

    def potential(self, name: str) -> Fraction:
        """What the revision could carry with all its instances that are not sick ready."""
        return self.share(name, {role: self.role(name, role).hopeful for role in self.roles(name)})

    def unavailable(self, name: str, role: Role) -> int:
        """Instances of a role that may be missing."""
        whole = self.desired[role] if role in self.desired else self.whole(name, role)
        return self.bounds.unavailable(whole)

    def limit(self, role: Role) -> int:
        """Instances of a role of the target that may exist over all revisions."""
        desired = self.desired[role]
        others = [self.whole(name, role) for name in self.old if not self.same_roles(name) and role in self.roles(name)]
        return max([desired, *others]) + self.bounds.surge(desired)

    def occupied(self, role: Role) -> int:
        """Instances of a role that hold a device or will, over all revisions."""
        return sum(self.role(name, role).occupied for name in self.revisions)

    @cached_property
    def removal_order(self) -> tuple[str, ...]:
        """Old revisions, the one to remove first first; the last is the base: it served, and can carry most."""

        def worth(name: str) -> tuple[bool, Fraction, bool, Fraction, str]:
            return (
                self.revisions[name].served,
                self.potential(name),
                self.complete(name),
                self.share(name),
                name,
            )

        return tuple(sorted(self.old, key=worth))

    def _ready(self, name: str, role: Role, ready: Mapping[Role, int] | None) -> int:
        return self.role(name, role).staying if ready is None else ready.get(role, 0)
