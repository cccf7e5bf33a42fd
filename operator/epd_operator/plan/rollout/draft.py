"""A step in the making."""

from collections.abc import Iterable
from fractions import Fraction

from epd_operator.api.role import Role
from epd_operator.plan.rollout.view import View


class Draft:
    """The replicas that a step will ask for, at first as they are, and the old revisions that it gives up."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.replicas: dict[str, dict[Role, int]] = {
            name: {role: view.role(name, role).replicas for role in view.roles(name)} for name in view.revisions
        }
        self.given_up: set[str] = set()
        """Old revisions that get no new requests and leave as a whole, role by role."""

    @property
    def new(self) -> dict[Role, int]:
        """The target's replicas."""
        return self.replicas[self.view.target]

    @property
    def kept(self) -> list[str]:
        """Old revisions that are not given up, in the order of removal; the last is the base."""
        return [name for name in self.view.removal_order if name not in self.given_up]

    @property
    def changed(self) -> bool:
        """Whether it differs from what is."""
        return any(
            replicas != self.view.role(name, role).replicas
            for name, roles in self.replicas.items()
            for role, replicas in roles.items()
        )

    def ready(self, name: str) -> dict[Role, int]:
        """What is ready now and stays."""
        return {
            role: min(self.view.role(name, role).staying, replicas) for role, replicas in self.replicas[name].items()
        }

    def passing(self, name: str) -> dict[Role, int]:
        """What answers now and stays, for however long it has been ready."""
        return {
            role: min(self.view.role(name, role).passing, replicas) for role, replicas in self.replicas[name].items()
        }

    def share(self, name: str) -> Fraction:
        """What the revision can carry with what stays; 0 if it is given up."""
        return Fraction(0) if name in self.given_up else self.view.share(name, self.ready(name))

    def shares(self, names: Iterable[str]) -> Fraction:
        """What several can carry together."""
        return sum((self.share(name) for name in names), Fraction(0))

    def kept_replicas(self, role: Role) -> int:
        """Replicas of a role in old revisions that are not given up."""
        return sum(self.replicas[name].get(role, 0) for name in self.kept)

    def room(self, role: Role, limit: int) -> int:
        """Instances of a role that may be added without exceeding `limit`, given all that exists or was added."""
        added = sum(
            max(0, roles.get(role, 0) - self.view.role(name, role).replicas) for name, roles in self.replicas.items()
        )
        return max(0, limit - self.view.occupied(role) - added)
