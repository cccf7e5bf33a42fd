"""What a rule is: data that documents it, and one pure function that finds where an object breaks it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from epd_operator.api.finding import Severity
from epd_operator.engine.flags import Argument
from epd_operator.engine.instance import Instance
from epd_operator.engine.release import OLDEST, Release
from epd_operator.engine.wiring import Wiring


class Kind(StrEnum):
    """Why a rule is there."""

    REFUSED = "refused by vLLM"
    """vLLM ends with an error, after the image pull and often after the model load."""
    SILENT = "accepted but wrong"
    """vLLM starts and does something else than asked."""
    STRICTER = "stricter than vLLM"
    """Not vLLM's matter: the cluster, the operator or the other roles need it."""
    ADVICE = "advice"
    """Works, and is most likely not what is wanted."""


@dataclass(frozen=True, slots=True)
class Broken:
    """One place where an object breaks a rule."""

    path: str
    value: Any
    message: str
    """Why it is wrong: what vLLM or the cluster does then. No final full stop."""
    remedy: str
    """What to do about it. No final full stop."""

    @classmethod
    def at(cls, instance: Instance, given: Argument, message: str, remedy: str) -> Self:
        """An argument of the user's that breaks it: where it stands, and as it is written there."""
        return cls(instance.arg_path(given), instance.written(given), message, remedy)


Check = Callable[[Wiring], Iterable[Broken]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule."""

    id: str
    """Kebab-case, stable."""
    severity: Severity
    kind: Kind
    what: str
    """The rule in one sentence."""
    why: str
    """What happens when it is broken."""
    source: str
    """Where the fact was read or seen: vLLM file and release, or Kubernetes document."""
    check: Check
    since: Release = OLDEST
    """First release that it holds for."""
    until: Release | None = None
    """First release that it does not hold for any more."""
    proved: bool = False
    """The conformance tests put its cases before the real vLLM of every release that it holds for: it refuses them, or,
    where the rule is about what vLLM accepts, it accepts them."""
    unproved: str = ""
    """Why vLLM cannot be asked, where a rule that says what it refuses or accepts is not proved."""
    needs_release: bool = False
    """Silent where the object names no release."""

    def holds_for(self, release: Release | None) -> bool:
        """Whether the rule applies to a release; with none named, only if it does not depend on one."""
        if release is None:
            return not self.needs_release and self.since == OLDEST and self.until is None
        return release.is_within(self.since, self.until)


def rule(**data: Any) -> Callable[[Check], Rule]:
    """Make a rule of the function that checks it."""

    def make(check: Check) -> Rule:
        return Rule(check=check, **data)

    return make
