"""The webhook's answer: the same rules, in the same words, as `epd validate` and the reconciler. Pure."""

from collections.abc import Mapping
from typing import Any

from epd_operator.api.finding import Severity
from epd_operator.controller.accept import findings_of
from epd_operator.engine.wiring import Defaults
from epd_operator.plan.settings import Settings

MAX_WARNINGS = 20
"""Kubernetes shortens what is longer than 4096 characters altogether: the first ones tell most."""


def review(body: Mapping[str, Any], old: Mapping[str, Any] | None, settings: Settings) -> tuple[list[str], list[str]]:
    """What forbids an object, and what warns of it.

    An update may leave what is wrong as it is: an error that the object before has too, of the same rule at the same
    place with the same value, warns. An update of nothing but metadata or status, and a deletion, is never refused.
    """
    if old is not None and old.get("spec") == body.get("spec"):
        return [], []
    findings = findings_of(body, _defaults(body), settings)
    before = findings_of(old, _defaults(old), settings) if old is not None else ()
    known = {str(finding) for finding in before if finding.severity is Severity.ERROR}
    errors = [str(f) for f in findings if f.severity is Severity.ERROR and str(f) not in known]
    left = [f"(as before) {f}" for f in findings if f.severity is Severity.ERROR and str(f) in known]
    warnings = [*left, *(str(f) for f in findings if f.severity is Severity.WARNING)]
    return errors, warnings[:MAX_WARNINGS]


def _defaults(body: Mapping[str, Any]) -> Defaults | None:
    chosen = (body.get("status") or {}).get("defaults") or {}
    if not chosen:
        return None
    return Defaults(chosen.get("embeddingsConnector"), chosen.get("kvConnector"))
