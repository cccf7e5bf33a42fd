"""The verdict on an object, and the rendering that it asks for: a kept one wherever it can be. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epd_operator.api import names
from epd_operator.api.deployment import EPDDeployment
from epd_operator.api.finding import Finding, Severity, has_errors
from epd_operator.api.parse import parse
from epd_operator.api.role import Role
from epd_operator.cluster.resources import Object
from epd_operator.controller.carry import carried
from epd_operator.controller.rendering import Content, Rendering, spec_digest, unscaled, without_replicas
from epd_operator.engine.wiring import Defaults, TransferChoice
from epd_operator.manifests.render import render
from epd_operator.plan.build import Unacceptable, build
from epd_operator.plan.plan import Plan
from epd_operator.plan.settings import Settings


@dataclass(frozen=True)
class Acceptance:
    """The verdict."""

    findings: tuple[Finding, ...]
    """Errors among them: the object is refused, and what was accepted before stays."""
    kept: Rendering | None
    """The kept rendering that is asked for, or that stays."""
    content: Content | None = None
    """A rendering that is not kept yet; None if `kept` will do."""

    @property
    def refused(self) -> bool:
        """Whether the object breaks rules."""
        return has_errors(self.findings)


def accept(body: Mapping[str, Any], renderings: Sequence[Rendering], settings: Settings) -> Acceptance:
    """Check an object, and find or make its rendering. `renderings`: the kept ones of this object, in any order."""
    latest = max(renderings, key=lambda kept: kept.number, default=None)
    parsed = parse(body)
    if parsed.deployment is None:
        return Acceptance(parsed.findings, latest)
    before = latest.content() if latest else None
    asked = render_annotation(body)
    defaults = _defaults(body, before, asked)
    try:
        plan = _build(parsed.deployment, body, before, defaults, settings)
    except Unacceptable as verdict:
        return Acceptance((*parsed.findings, *verdict.findings), latest)
    findings = (*parsed.findings, *plan.warnings)
    spec = unscaled(body["spec"])
    digest = spec_digest(spec, asked)
    matching = [kept for kept in renderings if kept.spec_digest == digest]
    if matching:
        found = max(matching, key=lambda kept: kept.number)
        # One that is asked for again is kept anew, as the latest: the data of a ControllerRevision cannot be patched.
        return Acceptance(findings, found) if found is latest else Acceptance(findings, latest, found.content())
    objects = without_replicas(render(plan))
    if before is not None and before.render == asked:
        objects = _carried(before, objects, body, defaults, settings)
    content = Content(spec, asked, facts_of(plan, objects), objects)
    if latest is not None and before is not None and (before.render, before.objects) == (asked, objects):
        return Acceptance(findings, latest)
    return Acceptance(findings, latest, content)


def render_annotation(body: Mapping[str, Any]) -> str:
    """The value that asks for a rendering anew when it changes."""
    return str((body["metadata"].get("annotations") or {}).get(names.ANNOTATION_RENDER, ""))


def tolerated(old_findings: Sequence[Finding]) -> list[Finding]:
    """What an update may leave as it is: the errors that the accepted object has under today's rules."""
    return [finding for finding in old_findings if finding.severity is Severity.ERROR]


def findings_of(body: Mapping[str, Any], defaults: Defaults | None, settings: Settings) -> tuple[Finding, ...]:
    """All that is wrong with an object."""
    parsed = parse(body)
    if parsed.deployment is None:
        return parsed.findings
    try:
        return (*parsed.findings, *build(parsed.deployment, defaults=defaults, settings=settings).warnings)
    except Unacceptable as verdict:
        return (*parsed.findings, *verdict.findings)


def facts_of(plan: Plan, objects: Sequence[Object]) -> dict[str, Any]:
    """What the status says of a plan. The revision is that of the objects, which may be a kept one."""
    labels = [body["metadata"].get("labels") or {} for body in objects]
    encode = plan.role(Role.ENCODE)
    return {
        "topology": str(plan.topology),
        "revision": next((label[names.LABEL_REVISION] for label in labels if names.LABEL_REVISION in label), ""),
        "engineVersion": str(plan.release),
        "preprocessingDevice": encode.preprocessing_device if encode else None,
        "defaults": {
            "embeddingsConnector": _chosen(plan.wiring.embeddings),
            "kvConnector": _chosen(plan.wiring.kv),
        },
        "roles": {
            str(role.role): {
                "drainSeconds": role.drain.shutdown_timeout_seconds,
                "progressDeadlineSeconds": role.progress_deadline_seconds,
            }
            for role in plan.roles
        },
        "url": f"http://{plan.proxy.name}.{plan.namespace}.svc:{plan.proxy.port}",
    }


def _chosen(transfer: TransferChoice | None) -> str | None:
    """The connector that was chosen by default; what a user names is none that stays."""
    return transfer.connector if transfer is not None and transfer.chosen else None


def _build(
    deployment: EPDDeployment,
    body: Mapping[str, Any],
    before: Content | None,
    defaults: Defaults | None,
    settings: Settings,
) -> Plan:
    try:
        return build(deployment, defaults=defaults, settings=settings)
    except Unacceptable as verdict:
        if before is None:
            raise
        old = findings_of({**body, "spec": before.spec}, defaults, settings)
        excused = [finding for finding in verdict.findings if finding in tolerated(old)]
        return build(deployment, defaults=defaults, settings=settings, tolerated=excused)


def _carried(
    before: Content,
    objects: tuple[Object, ...],
    body: Mapping[str, Any],
    defaults: Defaults | None,
    settings: Settings,
) -> tuple[Object, ...]:
    parsed = parse({**body, "spec": before.spec})
    if parsed.deployment is None:
        return objects
    try:
        plan = build(parsed.deployment, defaults=defaults, settings=settings)
    except Unacceptable as verdict:
        plan = build(parsed.deployment, defaults=defaults, settings=settings, tolerated=verdict.findings)
    return carried(before.objects, without_replicas(render(plan)), objects)


def _defaults(body: Mapping[str, Any], before: Content | None, asked: str) -> Defaults | None:
    """Defaults that were chosen stay, until a rendering anew is asked for."""
    if before is not None and before.render != asked:
        return None
    chosen = before.facts["defaults"] if before is not None else (body.get("status") or {}).get("defaults")
    if not chosen:
        return None
    return Defaults(chosen.get("embeddingsConnector"), chosen.get("kvConnector"))
