"""What shall be written, as data."""

from dataclasses import dataclass

from epd_operator.api.conditions import Reason
from epd_operator.cluster.resources import Object, Resource
from epd_operator.controller.child import Child


@dataclass(frozen=True)
class Keep:
    """Keep a rendering: create its ControllerRevision."""

    body: Object


@dataclass(frozen=True)
class MakeSecret:
    """Create a Secret with a random key if there is none of its name."""

    body: Object


@dataclass(frozen=True)
class Create:
    """Create an object that nobody writes again, if there is none of its name."""

    resource: Resource
    body: Object


@dataclass(frozen=True)
class Apply:
    """Make a child what it shall be."""

    resource: Resource
    body: Object
    digest: str
    known: Child | None
    """The child as it is; None where none was seen, so that one of the name must be a stranger's."""


@dataclass(frozen=True)
class Confirm:
    """The child was seen to be right; nothing is written."""

    child: Child
    digest: str


@dataclass(frozen=True)
class Remove:
    """Delete what is wanted no more."""

    resource: Resource
    namespace: str
    name: str
    uid: str


Action = Keep | MakeSecret | Create | Apply | Confirm | Remove


@dataclass(frozen=True)
class Problem:
    """Why not all could be done."""

    reason: Reason
    message: str
    passing: bool = False
    """It is expected to go away by itself, soon."""
    ending: bool = False
    """The namespace is going, and the object with it: nothing is worth a word."""
