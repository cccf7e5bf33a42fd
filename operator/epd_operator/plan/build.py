"""An object becomes its plan."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from epd_operator.api.deployment import EPDDeployment
from epd_operator.api.finding import Finding, Severity, has_errors
from epd_operator.api.role import Role
from epd_operator.engine.release import Release
from epd_operator.engine.rules import check
from epd_operator.engine.wiring import Defaults, Wiring, wire
from epd_operator.plan.plan import Plan
from epd_operator.plan.proxy import proxy_plan, pruner_plan
from epd_operator.plan.revision import revision_of
from epd_operator.plan.roles import image_of, role_plan
from epd_operator.plan.rollout import rollout_plan
from epd_operator.plan.settings import DEFAULT_SETTINGS, Settings


class Unacceptable(Exception):  # noqa: N818  (a verdict, not a failure of the program)
    """The object breaks rules; no plan is made of it."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__("\n".join(str(finding) for finding in findings if finding.severity is Severity.ERROR))
        self.findings = findings
        """All findings, warnings too."""


def build(
    deployment: EPDDeployment,
    *,
    local: bool = False,
    defaults: Defaults | None = None,
    scales: Mapping[Role, int] | None = None,
    settings: Settings = DEFAULT_SETTINGS,
    tolerated: Collection[Finding] = (),
    model_config: Mapping[str, Any] | None = None,
) -> Plan:
    """Check an object and plan it.

    `local`: for processes on this machine. `defaults`: connectors chosen earlier. `scales`: replicas of the roles whose
    number an EPDRoleScale decides. `tolerated`: errors that the object had when it was accepted, before their rule was
    there; they become warnings. `model_config`: the model's config.json, where it is at hand. Raises Unacceptable with
    all findings if any of them is an error.
    """
    wiring = wire(deployment, local=local, defaults=defaults, model_config=model_config)
    findings = tuple(
        replace(finding, severity=Severity.WARNING) if finding in tolerated else finding for finding in check(wiring)
    )
    if has_errors(findings):
        raise Unacceptable(findings)
    images = {role: image_of(wiring, role) for role in wiring.instances}
    revision = revision_of(wiring, images)
    suspended = bool(deployment.spec.suspend)
    roles = tuple(
        role_plan(wiring, role, revision, 0 if suspended else replicas_of(wiring, role, scales or {}))
        for role in wiring.instances
    )
    return Plan(
        name=deployment.name,
        namespace=deployment.namespace,
        topology=wiring.topology,
        release=wiring.release or Release(0, 0),
        revision=revision,
        roles=roles,
        proxy=proxy_plan(wiring, settings, suspended=suspended),
        pruner=pruner_plan(wiring, settings),
        rollout=rollout_plan(wiring),
        defaults=Defaults(
            wiring.embeddings.connector if wiring.embeddings else None, wiring.kv.connector if wiring.kv else None
        ),
        suspended=suspended,
        wiring=wiring,
        warnings=findings,
    )


def replicas_of(wiring: Wiring, role: Role, scales: Mapping[Role, int]) -> int:
    """Instances of a role: what its EPDRoleScale says where scaling is external, else as written, else 1."""
    spec = wiring.instances[role].spec
    if spec.scaling is not None:
        return scales.get(role, 1)
    return 1 if spec.replicas is None else spec.replicas
