"""A plan becomes Kubernetes objects, in the order in which they are applied."""

from collections.abc import Iterator
from typing import Any

from epd_operator.api import names
from epd_operator.api.pod import PodTemplate
from epd_operator.engine import drain
from epd_operator.engine.site import POD
from epd_operator.manifests import engine, proxy
from epd_operator.manifests.overlay import overlaid
from epd_operator.manifests.templating import fill
from epd_operator.plan.plan import Plan, PrunerPlan, RolePlan

Object = dict[str, Any]

CREATED_ONCE = frozenset({"EPDRoleScale"})
"""Kinds whose objects are created if absent and never written again: their spec belongs to somebody else."""


def render(plan: Plan) -> list[Object]:
    """Every object of the plan, in apply order: what pods refer to comes before the pods.

    Objects are plain JSON and nobody else's. They carry no owner references, since the plan does not know the UID of
    its object, and the two Secrets with keys are not among them, since keys are random.
    """
    return list(_objects(plan))


def _objects(plan: Plan) -> Iterator[Object]:
    yield fill("proxy-serviceaccount.yaml.j2", plan=plan, proxy=plan.proxy)
    yield fill("proxy-rolebinding.yaml.j2", plan=plan, proxy=plan.proxy)
    yield _proxy_configmap(plan)
    yield _engines_networkpolicy(plan)
    yield fill("proxy-networkpolicy.yaml.j2", plan=plan, proxy=plan.proxy)
    for role in plan.roles:
        yield fill("role-service.yaml.j2", plan=plan, role=role, http_port=POD.ports.http)
    yield fill("proxy-service.yaml.j2", plan=plan, proxy=plan.proxy)
    for role in plan.roles:
        if role.external_scaling:
            yield _role_scale(plan, role)
    for part in (*plan.roles, plan.proxy):
        yield fill("poddisruptionbudget.yaml.j2", plan=plan, part=part)
    for role in plan.roles:
        yield _engine_deployment(plan, role)
    yield _proxy_deployment(plan)
    if plan.pruner is not None:
        yield _pruner_cronjob(plan, plan.pruner)


def _instance_labels(plan: Plan) -> dict[str, str]:
    return {names.LABEL_NAME: plan.proxy.labels[names.LABEL_NAME], names.LABEL_INSTANCE: plan.name}


def _proxy_configmap(plan: Plan) -> Object:
    return fill(
        "proxy-configmap.yaml.j2",
        plan=plan,
        proxy=plan.proxy,
        file=proxy.FILES.configuration_name,
        configuration=proxy.configuration_text(plan),
    )


def _engines_networkpolicy(plan: Plan) -> Object:
    roles = [str(role.role) for role in plan.roles]
    labels = {key: value for key, value in plan.proxy.labels.items() if key != names.LABEL_COMPONENT}
    return fill(
        "engines-networkpolicy.yaml.j2",
        plan=plan,
        name=names.engines_policy(plan.name),
        labels=labels,
        instance=_instance_labels(plan),
        roles=roles,
        peers=[*roles, names.PROXY],
    )


def _role_scale(plan: Plan, role: RolePlan) -> Object:
    labels = {key: value for key, value in role.labels.items() if key != names.LABEL_REVISION}
    replicas = max(1, role.replicas) if plan.suspended else role.replicas
    name = names.scale_name(plan.name, role.role)
    return fill("epdrolescale.yaml.j2", plan=plan, role=role, name=name, labels=labels, replicas=replicas)


def _engine_deployment(plan: Plan, role: RolePlan) -> Object:
    deployment = fill(
        "engine-deployment.yaml.j2",
        plan=plan,
        role=role,
        hash_annotation=names.ANNOTATION_TEMPLATE_HASH,
        min_ready_seconds=drain.ROUTING,
        script=engine.start_script(role),
        args=engine.arguments(role),
        resources=engine.resources(role.resources, role.device_resource, role.device_count),
    )
    return _with_overlay(deployment, role.overlay, wired=[v.name for v in role.command.env if v.wired])


def _proxy_deployment(plan: Plan) -> Object:
    deployment = fill(
        "proxy-deployment.yaml.j2",
        plan=plan,
        proxy=plan.proxy,
        files=proxy.FILES,
        port=proxy.PORT,
        resources=engine.resources(plan.proxy.resources),
        grace_seconds=proxy.PRE_STOP_SECONDS + plan.proxy.drain_seconds + proxy.MARGIN_SECONDS,
        pre_stop_seconds=proxy.PRE_STOP_SECONDS,
        uuid_key_secret=names.uuid_key_secret(plan.name),
        engine_key_secret=names.engine_key_secret(plan.name),
        secret_key=names.SECRET_KEY,
    )
    return _with_overlay(deployment, plan.proxy.overlay)


def _with_overlay(deployment: Object, overlay: PodTemplate | None, wired: list[str] | None = None) -> Object:
    if overlay is not None:
        template = overlaid(deployment["spec"]["template"], overlay, wired or ())
        deployment["spec"]["template"] = template
    return deployment


def _pruner_cronjob(plan: Plan, pruner: PrunerPlan) -> Object:
    args = ["--directory", f"{pruner.directory}/{plan.name}", "--older-than", str(pruner.older_than_seconds)]
    if pruner.keep_bytes is not None:
        args += ["--keep-bytes", str(pruner.keep_bytes)]
    return fill("pruner-cronjob.yaml.j2", plan=plan, pruner=pruner, args=args, instance=_instance_labels(plan))
