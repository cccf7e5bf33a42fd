"""How a change reaches the instances."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from epd_operator.api.base import APIModel, Bool, Count, Seconds


class RolloutStrategy(StrEnum):
    """How a new revision replaces the old one."""

    PROPORTIONAL = "Proportional"
    RECREATE = "Recreate"
    BLUE_GREEN = "BlueGreen"


class Preflight(StrEnum):
    """What a cluster that lacks the device means."""

    WARN = "Warn"
    ENFORCE = "Enforce"


_PERCENT = re.compile(r"(100|[1-9]?[0-9])%")


def _int_or_percent(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10_000:
        return value
    if isinstance(value, str) and _PERCENT.fullmatch(value):
        return value
    raise PydanticCustomError("int_or_percent", "must be a whole number from 0 or a percentage such as 25%")


IntOrPercent = Annotated[
    int | str,
    PlainValidator(_int_or_percent),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "pattern": "^(100|[1-9]?[0-9])%$",
        }
    ),
]


class Rollout(APIModel):
    """How a new revision replaces the old one, over all roles together."""

    strategy: RolloutStrategy | None = None
    """Proportional (default): old and new shift step by step in every role. Recreate: old first goes. BlueGreen: new is
    complete before traffic moves (needs the devices twice)."""
    max_surge: IntOrPercent | None = None
    """Instances of a role above its replicas during a rollout, count or percentage. Default 0: a surge pod would wait
    for a device that an old pod holds."""
    max_unavailable: IntOrPercent | None = None
    """Instances of a role that may be missing during a rollout, count or percentage. Default 1, with maxSurge 0; not 0
    without maxSurge."""
    progress_deadline_seconds: Annotated[Seconds, Field(ge=1)] | None = None
    """Without progress for so long a rollout is Stalled; the old revision goes on serving. Default 3600 seconds, and
    never below the startup timeout."""
    paused: Bool | None = None
    """Stop a rollout where it is. Default false."""
    history_limit: Count | None = None
    """Old revisions kept for a rollback. Default 10."""
