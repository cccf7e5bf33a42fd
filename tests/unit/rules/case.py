"""What a case of a rule is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Breaks:
    """A patch on the smallest valid object that breaks a rule, and where."""

    spec: str
    path: str
    value: Any
    name: str = "m"
    remedy: str = ""
    """Words that the remedy must have."""
    config: Mapping[str, Any] | None = None
    """The model's config.json, where it is at hand."""


@dataclass(frozen=True, slots=True)
class Spares:
    """A patch that comes near and is right."""

    spec: str
    name: str = "m"
    local: bool = False
    config: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """Objects that break one rule and only that, and near misses."""

    rule: str
    breaks: tuple[Breaks, ...]
    spares: tuple[Spares, ...]
