"""The rules' own cases before the real vLLM: it must do what the rule says that it does."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from epd_operator.engine.release import Release
from epd_operator.engine.rules import RULES, check
from epd_operator.engine.rules.rule import Kind, Rule
from epd_operator.engine.wiring import Wiring, wire
from tests.conformance.sweep import REFUSED, Platforms, ask, mispredicted
from tests.unit.objects import deployment
from tests.unit.rules.case import Breaks
from tests.unit.rules.test_cases import CASES

PROVED = tuple(rule for rule in RULES if rule.proved)
CLAIM = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: c}}}}"
"""Before 0.30 the default connector of embeddings asks for one."""


def disproved(rule: Rule, release: Release, judges: Platforms, folders: Mapping[str, Path]) -> Iterator[str]:
    """In words, each case of a rule that vLLM treats otherwise in a release; `folders` has models by name."""
    asked = 0
    for breaks in next(case.breaks for case in CASES if case.rule == rule.id):
        wiring = _in_release(rule, breaks, release)
        if wiring is None:
            continue
        asked += 1
        verdicts = dict(ask(wiring, judges, folders[_model(wiring, breaks)]))
        refused = {role for role, verdict in verdicts.items() if not verdict.accepted}
        if rule.kind is Kind.REFUSED:
            meant = [role for role in verdicts if breaks.path.startswith(f"spec.{role}.")]
            if not refused & set(meant or verdicts):
                yield f"{rule.id}: {breaks.spec!r} is accepted"
        else:
            yield from (f"{rule.id}: {breaks.spec!r} is refused: {verdicts[role].error}" for role in sorted(refused))
            yield from (f"{rule.id}: {breaks.spec!r}: {what}" for what in mispredicted(wiring, verdicts))
    if not asked:
        yield f"{rule.id}: no case of it can be put before vLLM {release}"


def _in_release(rule: Rule, breaks: Breaks, release: Release) -> Wiring | None:
    """The case as an object of a release, if the rule speaks there, and no other that says that vLLM refuses it."""
    for more in ("", CLAIM):
        spec = deployment(breaks.spec, more, f"engine: {{version: {release}}}", name=breaks.name)
        wiring = wire(spec, model_config=breaks.config)
        found = [(finding.rule, finding.path) for finding in check(wiring)]
        if (rule.id, breaks.path) in found and not {name for name, _ in found} & REFUSED - {rule.id}:
            return wiring
    return None


def _model(wiring: Wiring, breaks: Breaks) -> str:
    """A test model like the one that the case is about."""
    if breaks.config is not None:
        return "qwen3-vl-6"
    return "text" if wiring.deployment.spec.model.architecture == "Qwen2ForCausalLM" else "qwen3-vl-16"
