"""What is wrong, or worth a warning, in one object: where, what was found, why, and what to do."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """What a finding means: an error keeps every pod from being made, a warning none."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence of the verdict on an object."""

    rule: str
    """Stable id of the rule, kebab-case."""
    severity: Severity
    """Error or warning."""
    path: str
    """Path of the field, for example spec.encode.args[2]."""
    value: Any
    """What was found there, as JSON; None where the field is missing."""
    message: str
    """Why it is wrong, without a final full stop."""
    remedy: str
    """What to do about it, without a final full stop."""
    release: str | None = None
    """vLLM release that the verdict holds for; None where it holds for all."""

    def __str__(self) -> str:
        """The finding on one line: `path: value: message; remedy [rule]`."""
        return printable(f"{self.path}: {self.shown_value}: {self.message}; {self.remedy} [{self.rule}]")

    @property
    def shown_value(self) -> str:
        """The value as a user wrote it, shortened, on one line, without control characters.

        Text that would read as something else is quoted.
        """
        if self.value is None:
            return "(not set)"
        plain = isinstance(self.value, str) and _reads_as_text(self.value)
        text = str(self.value) if plain else json.dumps(self.value, default=str, ensure_ascii=False)
        text = printable(text)
        return text if len(text) <= 120 else text[:117] + "..."

    def as_json(self) -> dict[str, Any]:
        """The finding in the shape of `epd validate -o json`."""
        return {
            "rule": self.rule,
            "severity": str(self.severity),
            "path": self.path,
            "value": self.value,
            "message": self.message,
            "remedy": self.remedy,
            "release": self.release,
        }


def printable(text: str) -> str:
    """The text without line ends and control characters, which could forge or hide lines on a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _reads_as_text(text: str) -> bool:
    """Whether YAML reads the text as text when it has no quotes, as far as people care: no number, true or blank."""
    if not text or text != text.strip() or text.lower() in ("true", "false", "yes", "no", "on", "off"):
        return False
    try:
        float(text)
    except ValueError:
        return True
    return False


def has_errors(findings: list[Finding] | tuple[Finding, ...]) -> bool:
    """Whether any of the findings keeps the object from being accepted."""
    return any(finding.severity is Severity.ERROR for finding in findings)
