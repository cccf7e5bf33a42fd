"""All rules, and the verdict of all rules on one object."""

from collections.abc import Iterator

from epd_operator.api.finding import Finding, Severity
from epd_operator.engine.rules import (
    arguments,
    devices,
    eccpu,
    embeddings,
    environment,
    extra_config,
    flag_needs,
    flags,
    kv,
    media,
    memory,
    model_runner,
    models,
    mooncake,
    naming,
    overlay,
    podspec,
    ports,
    preprocessing,
    processor,
    proxy,
    releases,
    resources,
    rollout,
    secrets,
    size,
    storage,
    topology,
)
from epd_operator.engine.rules.rule import Rule
from epd_operator.engine.wiring import Wiring

RULES: tuple[Rule, ...] = (
    *releases.RULES,
    *topology.RULES,
    *naming.RULES,
    *models.RULES,
    *preprocessing.RULES,
    *processor.RULES,
    *embeddings.RULES,
    *eccpu.RULES,
    *mooncake.RULES,
    *kv.RULES,
    *extra_config.RULES,
    *devices.RULES,
    *storage.RULES,
    *memory.RULES,
    *resources.RULES,
    *arguments.RULES,
    *flags.RULES,
    *flag_needs.RULES,
    *model_runner.RULES,
    *media.RULES,
    *environment.RULES,
    *proxy.RULES,
    *rollout.RULES,
    *overlay.RULES,
    *podspec.RULES,
    *ports.RULES,
    *secrets.RULES,
    *size.RULES,
)
"""In the order in which findings are shown."""


def check(wiring: Wiring, rules: tuple[Rule, ...] = RULES) -> list[Finding]:
    """The findings of `rules` on one object, in the order of the table, one for each place.

    Where several rules are broken by one value, the first error speaks: whoever changes the value asks again.
    """
    found = [finding for rule in rules if rule.holds_for(wiring.release) for finding in _findings(rule, wiring)]
    first: dict[str, Finding] = {}
    for finding in sorted(found, key=lambda finding: finding.severity is not Severity.ERROR):
        first.setdefault(finding.path, finding)
    return [finding for finding in found if first[finding.path] is finding]


def _findings(rule: Rule, wiring: Wiring) -> Iterator[Finding]:
    release = str(wiring.release) if wiring.release is not None and rule.needs_release else None
    for broken in rule.check(wiring):
        value = str(broken.value) if isinstance(broken.value, str) else broken.value
        yield Finding(rule.id, rule.severity, broken.path, value, broken.message, broken.remedy, release)
