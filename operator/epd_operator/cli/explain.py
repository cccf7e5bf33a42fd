"""`epd explain`: the plan in words."""

import json
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from epd_operator.api.deployment import EPDDeployment
from epd_operator.api.finding import printable
from epd_operator.cli.findings import Verdict, exit_status, judge_files, output_option, print_findings
from epd_operator.cli.model_config import model_config_of, models_option
from epd_operator.cli.rollout import explain_rollout
from epd_operator.engine.prediction import Prediction, predict
from epd_operator.plan.build import build
from epd_operator.plan.plan import Plan, RolePlan

_MIB = 1 << 20


@click.command("explain")
@click.argument("files", nargs=-1, metavar="FILE...")
@click.option(
    "--rollout", nargs=2, metavar="OLD NEW", help="Show the steps from the object in OLD to that in NEW instead."
)
@models_option
@output_option
def command(files: tuple[str, ...], output: str, rollout: tuple[str, str] | None, models: Path | None) -> None:
    """Say what FILEs lead to: topology, devices, each role's command line and environment with reasons, memory."""
    if bool(files) is bool(rollout):
        raise click.UsageError("Give FILE..., or --rollout OLD NEW.")
    if rollout:
        sys.exit(explain_rollout(*rollout, output))
    verdicts, readable = judge_files(files, models=models)
    plans = [(verdict, _plan(verdict, models)) for verdict in verdicts]
    if output == "json":
        click.echo(json.dumps([_as_json(verdict, plan) for verdict, plan in plans], indent=2))
    else:
        for verdict, plan in plans:
            print_findings(verdict)
            if plan is not None:
                click.echo("\n".join(map(_painted, _lines(plan))))
    sys.exit(exit_status(verdicts, readable=readable))


def _plan(verdict: Verdict, models: Path | None) -> Plan | None:
    deployment: EPDDeployment | None = verdict.deployment
    if deployment is None or not verdict.accepted:
        return None
    return build(deployment, model_config=model_config_of(deployment, models))


def _painted(line: str) -> str:
    """A line without control characters; headings, which alone are not indented, begin with a bold name."""
    head, colon, rest = printable(line).partition(":")
    return head + colon + rest if line[:1] in ("", " ") else click.style(head, bold=True) + colon + rest


def _lines(plan: Plan) -> Iterator[str]:
    yield f"{plan.name}: {plan.topology} on vLLM {plan.release}, revision {plan.revision}"
    wiring = plan.wiring
    for what, choice in (("embeddings", wiring.embeddings), ("KV blocks", wiring.kv)):
        if choice is not None:
            yield f"  {what} go by {choice.connector}{' (chosen by default)' if choice.chosen else ''}"
    for role in plan.roles:
        yield ""
        yield from _role_lines(role, predict(wiring, wiring.instances[role.role]))
    proxy = plan.proxy
    yield ""
    yield f"proxy: {proxy.replicas} of {proxy.image}"
    yield f"  http://{proxy.name}.{plan.namespace}.svc:{proxy.port} serves {proxy.served_name}"
    for name, value in proxy.settings.items():
        yield f"  {name}: {value if isinstance(value, str) else json.dumps(value)}"
    if plan.pruner is not None:
        keep = (
            "none of older ones" if plan.pruner.keep_bytes is None else f"{plan.pruner.keep_bytes} bytes of older ones"
        )
        yield f"  {plan.pruner.name} keeps files read or written in {plan.pruner.older_than_seconds} s, and {keep}"


def _role_lines(role: RolePlan, prediction: Prediction) -> Iterator[str]:
    devices = f"{role.device_count} x {role.device_resource}" if role.device_resource else str(role.device.type)
    count = "as its EPDRoleScale says" if role.external_scaling else str(role.replicas)
    yield f"{role.role}: {count} of {role.image} on {devices}"
    yield f"  media become tensors on {role.preprocessing_device}"
    yield f"  vLLM makes of it: {', '.join(_predicted(prediction))}"
    uses = ", ".join(f"{use.what} {use.bytes // _MIB}Mi" for use in role.shared_memory_uses)
    yield f"  /dev/shm {role.shared_memory_bytes // _MIB}Mi: {uses}"
    drain = role.drain
    yield (
        f"  ends: {drain.pre_stop_seconds} s until nobody routes or reads, {drain.shutdown_timeout_seconds} s for "
        f"running requests, {drain.grace_seconds} s at most"
    )
    yield f"  vllm serve {shlex.quote(role.command.model)}"
    yield from _table([(shlex.join(arg.words), arg.reason) for arg in role.command.args])
    yield "  environment"
    yield from _table([(f"{variable.name}={variable.shown}", variable.reason) for variable in role.command.env])


def _predicted(prediction: Prediction) -> Iterator[str]:
    """What vLLM derives by itself, in words."""
    yield "an encoder only" if prediction.encode_only else "a language model with its encoder"
    if prediction.allow_missing_mm_embeddings:
        yield "media as metadata only accepted"
    yield f"prefix caching {'on' if prediction.prefix_caching else 'off'}"
    yield f"model runner V{2 if prediction.v2_model_runner else 1}"


def _table(rows: list[tuple[str, str]]) -> Iterator[str]:
    """Two columns; a long first cell puts its reason on the next line."""
    width = min(60, max((len(left) for left, _ in rows), default=0))
    for left, right in rows:
        if len(left) <= width:
            yield f"    {left:<{width}}  # {right}"
        else:
            yield f"    {left}"
            yield f"    {'':<{width}}  # {right}"


def _as_json(verdict: Verdict, plan: Plan | None) -> dict[str, Any]:
    place = {"file": verdict.document.file, "document": verdict.document.index, "name": verdict.document.name}
    if plan is None:
        return place | {"topology": None, "revision": None, "findings": verdict.as_json(), "roles": [], "proxy": None}
    return place | {
        "topology": str(plan.topology),
        "revision": plan.revision,
        "release": str(plan.release),
        "embeddingsConnector": plan.defaults.embeddings_connector,
        "kvConnector": plan.defaults.kv_connector,
        "findings": verdict.as_json(),
        "roles": [
            _role_json(role) | {"prediction": asdict(predict(plan.wiring, plan.wiring.instances[role.role]))}
            for role in plan.roles
        ],
        "proxy": {
            "name": plan.proxy.name,
            "replicas": plan.proxy.replicas,
            "image": plan.proxy.image,
            "port": plan.proxy.port,
            "servedName": plan.proxy.served_name,
            "url": f"http://{plan.proxy.name}.{plan.namespace}.svc:{plan.proxy.port}",
            "settings": dict(plan.proxy.settings),
        },
    }


def _role_json(role: RolePlan) -> dict[str, Any]:
    return {
        "name": str(role.role),
        "workload": role.name,
        "replicas": role.replicas,
        "image": role.image,
        "argv": list(role.command.argv),
        "env": {variable.name: variable.shown for variable in role.command.env},
        "reasons": {
            **{arg.flag: arg.reason for arg in role.command.args},
            **{variable.name: variable.reason for variable in role.command.env},
        },
        "ports": {port.name: port.number for port in role.ports},
        "device": str(role.device.type),
        "deviceResource": role.device_resource,
        "deviceCount": role.device_count,
        "sharedMemoryBytes": role.shared_memory_bytes,
        "preprocessingDevice": role.preprocessing_device,
        "templateHash": role.template_hash,
        "preStopSeconds": role.drain.pre_stop_seconds,
        "shutdownTimeoutSeconds": role.drain.shutdown_timeout_seconds,
        "terminationGracePeriodSeconds": role.drain.grace_seconds,
    }
