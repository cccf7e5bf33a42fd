"""`epd explain --rollout OLD NEW`: what a change does to the instances, step by step."""

import json
from collections.abc import Iterator
from typing import Any

import click

from epd_operator.api.finding import printable
from epd_operator.cli.findings import EXIT_UNREADABLE, Verdict, exit_status, judge_files, print_findings
from epd_operator.plan.build import build
from epd_operator.plan.plan import Plan
from epd_operator.plan.rollout.simulation import Stage, simulate, start_of


def explain_rollout(old: str, new: str, output: str) -> int:
    """Print the steps from the object in one file to that in another; return the exit status."""
    verdicts, readable = judge_files((old, new))
    for verdict in verdicts:
        print_findings(verdict, err=output == "json")
    status = exit_status(verdicts, readable=readable)
    if status:
        return status
    problem = _mismatch(old, new, verdicts)
    if problem:
        click.echo(printable(f"error: {problem}"), err=True)
        return EXIT_UNREADABLE
    before, after = (verdict.deployment for verdict in verdicts)
    assert before is not None  # noqa: S101  (accepted verdicts have one)
    assert after is not None  # noqa: S101
    first = build(before)
    second = build(after, defaults=first.defaults)
    stages = list(simulate(start_of(first, second))) if first.revision != second.revision else []
    click.echo(
        json.dumps(_as_json(first, second, stages), indent=2) if output == "json" else _text(first, second, stages)
    )
    return 0


def _mismatch(old: str, new: str, verdicts: list[Verdict]) -> str | None:
    for file in dict.fromkeys((old, new)):
        count = sum(verdict.document.file == file for verdict in verdicts)
        if old != new and count != 1:
            return f"{file}: holds {count} EPDDeployments; --rollout compares one with one"
    if len(verdicts) != 2:
        return f"{old}: holds {len(verdicts) // 2} EPDDeployments; --rollout compares one with one"
    names = [verdict.document.name for verdict in verdicts]
    if names[0] != names[1]:
        return f"{new}: is {names[1]} and {old} is {names[0]}; a rollout is of one object, so give both one name"
    return None


def _text(old: Plan, new: Plan, stages: list[Stage]) -> str:
    return "\n".join(_moves(old, new, stages) if stages else _in_place(old, new))


def _in_place(old: Plan, new: Plan) -> Iterator[str]:
    yield f"{click.style(new.name, bold=True)}: revision {new.revision} stays"
    rollout = new.rollout
    how = (
        "all at once" if rollout.recreate else f"maxSurge {rollout.max_surge}, maxUnavailable {rollout.max_unavailable}"
    )
    same = True
    for role, replaced, counts in _role_changes(old, new):
        same = same and not replaced and counts[0] == counts[1]
        if replaced:
            yield f"  {role}: instances are replaced in place, {how}"
        if counts[0] != counts[1]:
            yield f"  {role}: {counts[0]} to {counts[1]} instances; none restarts"
    if same:
        yield "  no instance changes"


def _role_changes(old: Plan, new: Plan) -> Iterator[tuple[str, bool, tuple[int, int]]]:
    for role in new.roles:
        before = old.role(role.role)
        if before is not None:
            yield str(role.role), before.template_hash != role.template_hash, (before.replicas, role.replicas)


def _moves(old: Plan, new: Plan, stages: list[Stage]) -> Iterator[str]:
    rollout = new.rollout
    yield (
        f"{click.style(new.name, bold=True)}: revision {old.revision} ({old.topology}, vLLM {old.release}) to "
        f"{new.revision} ({new.topology}, vLLM {new.release})"
    )
    yield f"  {rollout.strategy}, maxSurge {rollout.max_surge}, maxUnavailable {rollout.max_unavailable}"
    yield "  old + new: instances asked for, and the percentage of requests; a step follows once pods are ready or gone"
    yield "  drain: seconds spent so far on the last requests of what leaves"
    yield ""
    roles = list(dict.fromkeys(str(plan.role) for plan in (*old.roles, *new.roles)))
    start = ["0", "", *(f"{_replicas(old, role)} + 0" for role in roles), "100 + 0", "as it is"]
    rows = [["step", "drain", *roles, "traffic", "what happens"], start]
    for number, stage in enumerate(stages, 1):
        rows.append(_row(number, stage, old.revision, new.revision, roles))
    yield from _columns(rows)
    if any(not stage.step.serving for stage in stages) and any(plan.replicas for plan in new.roles):
        yield ""
        word = click.style("outage", fg="yellow")
        yield f"{word}: in between nothing serves; two replicas of each role, or maxSurge, avoid it"


def _replicas(plan: Plan, role: str) -> int:
    return next((each.replicas for each in plan.roles if each.role == role), 0)


def _row(number: int, stage: Stage, old: str, new: str, roles: list[str]) -> list[str]:
    step = stage.step
    replicas = {name: {str(role): count for role, count in counts.items()} for name, counts in step.replicas.items()}
    cells = [f"{replicas.get(old, {}).get(role, 0)} + {replicas.get(new, {}).get(role, 0)}" for role in roles]
    drain = f"{stage.drained_seconds} s" if stage.drained_seconds else ""
    return [str(number), drain, *cells, f"{step.serving.get(old, 0)} + {step.serving.get(new, 0)}", step.reason]


def _columns(rows: list[list[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _as_json(old: Plan, new: Plan, stages: list[Stage]) -> dict[str, Any]:
    return {
        "name": new.name,
        "oldRevision": old.revision,
        "newRevision": new.revision,
        "strategy": str(new.rollout.strategy),
        "inPlace": [] if stages else [role for role, replaced, _ in _role_changes(old, new) if replaced],
        "outage": any(not stage.step.serving for stage in stages),
        "steps": [
            {
                "drainedSeconds": stage.drained_seconds,
                "replicas": {
                    name: {str(k): n for k, n in roles.items()} for name, roles in stage.step.replicas.items()
                },
                "serving": dict(stage.step.serving),
                "phase": str(stage.step.phase),
                "reason": stage.step.reason,
            }
            for stage in stages
        ],
    }
