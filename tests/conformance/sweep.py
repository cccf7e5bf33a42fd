"""The operator's verdict on random objects beside the real vLLM's, one release after the other.

    python -m tests.conformance.sweep --seed 7 --count 3000 [--release 0.33]

An object is wrongly accepted where the operator finds no error and vLLM refuses one of its roles; wrongly refused
where a rule says that vLLM refuses, and vLLM accepts the role. Rules that are stricter than vLLM say so themselves.
"""

import argparse
import dataclasses
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from epd_operator.api.device import DeviceType
from epd_operator.api.finding import Finding, Severity
from epd_operator.api.parse import parse
from epd_operator.api.role import Role
from epd_operator.engine.capabilities import Capabilities, capabilities
from epd_operator.engine.command import command
from epd_operator.engine.prediction import predict
from epd_operator.engine.release import Release
from epd_operator.engine.rules import RULES, check
from epd_operator.engine.rules.rule import Kind
from epd_operator.engine.wiring import Wiring, wire
from hack.vllm import fetch
from tests.conformance import models
from tests.conformance.objects import random_object
from tests.conformance.oracle import Oracle, Verdict, oracle

REFUSED = {rule.id for rule in RULES if rule.kind is Kind.REFUSED and rule.proved}
"""What vLLM refuses before it starts an engine; other refusals need a device or a peer."""
ADDRESS = "10.0.0.1"


class Platforms(Protocol):
    """The judges of one release, by platform."""

    def __getitem__(self, platform: str, /) -> Oracle: ...


@dataclass(frozen=True, slots=True)
class Disagreement:
    """One object on which the operator and vLLM differ."""

    what: str
    findings: tuple[Finding, ...]
    verdicts: Mapping[Role, Verdict]
    document: Mapping[str, Any]

    def __str__(self) -> str:
        """Both answers, and the object."""
        lines = [self.what, *(f"  epd: {finding}" for finding in self.findings)]
        lines += [f"  vLLM {role}: {'accepts' if v.accepted else v.error[:240]}" for role, v in self.verdicts.items()]
        return "\n".join([*lines, "  " + json.dumps(self.document["spec"])])


@dataclass(slots=True)
class Report:
    """What a sweep of one release found."""

    objects: int = 0
    roles: int = 0
    """Instances that vLLM was asked about."""
    accepted: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)


def sweep(
    judges: Platforms,
    folders: Mapping[str, Path],
    known: Capabilities,
    *,
    seed: int,
    count: int,
    tell: Callable[[Disagreement], object] = lambda _: None,
) -> Report:
    """Put `count` random objects before both; `judges` by platform; `tell` is given each difference when found."""
    rng = random.Random(f"{seed} {known.version}")
    architectures = {name: config["architectures"][0] for name, config in models.MODELS.items() if "-16" in name}
    architectures["text"] = "Qwen2ForCausalLM"
    report = Report()
    while report.objects < count:
        drawn = random_object(rng, known, architectures)
        parsed = parse(drawn.document)
        if parsed.deployment is None:
            raise AssertionError(f"the sweep made an object of a wrong shape: {parsed.findings}")
        report.objects += 1
        wiring = wire(parsed.deployment, model_config=models.MODELS[drawn.model] if drawn.known else None)
        findings = tuple(check(wiring))
        verdicts = dict(ask(wiring, judges, folders[drawn.model]))
        report.roles += len(verdicts)
        report.rules.update({finding.rule for finding in findings})
        report.accepted += not any(finding.severity is Severity.ERROR for finding in findings)
        for what in compare(wiring, findings, verdicts):
            report.disagreements.append(Disagreement(what, findings, verdicts, drawn.document))
            tell(report.disagreements[-1])
    return report


def ask(wiring: Wiring, judges: Platforms, folder: Path) -> Iterator[tuple[Role, Verdict]]:
    """VLLM's verdict on each role, with the model in `folder`."""
    for role, instance in wiring.instances.items():
        line = command(wiring, role)
        argv = [str(folder), *(word.replace("$(POD_IP)", ADDRESS) for word in line.argv[1:])]
        env = {variable.name: variable.value if variable.value is not None else ADDRESS for variable in line.env}
        # What the user wrote, also where the operator would insist on its own: rules say what vLLM makes of it.
        env |= {name: entry.variable.value for name, entry in instance.env.items() if entry.variable.value is not None}
        platform = "cpu" if instance.device_type is DeviceType.CPU else "cuda"
        yield role, judges[platform].ask(argv, {name: value for name, value in env.items() if not _folder(name)})


def _folder(name: str) -> bool:
    """Whether a variable names a folder of the pod, which the test machine does not have."""
    return name in ("HOME", "HF_HOME", "XDG_CACHE_HOME") or name.endswith(("_CACHE_DIR", "_CACHE_ROOT"))


def compare(wiring: Wiring, findings: tuple[Finding, ...], verdicts: Mapping[Role, Verdict]) -> Iterator[str]:
    """In words, each way in which the two verdicts differ."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    refused = {role for role, verdict in verdicts.items() if not verdict.accepted}
    if refused and not errors:
        yield f"epd accepts, vLLM refuses {', '.join(sorted(refused))}"
    # A flag of the wiring among the user's makes two command lines of one object; the rules judge the operator's.
    clash = any(finding.rule == "args-clash-with-wiring" for finding in errors)
    for finding in errors:
        if finding.rule in REFUSED and not clash:
            meant = [role for role in wiring.instances if finding.path.startswith(f"spec.{role}.")]
            if not refused & set(meant or wiring.instances):
                yield f"epd says that vLLM refuses by {finding.rule}, vLLM accepts"
    if not errors:
        yield from mispredicted(wiring, verdicts)


def mispredicted(wiring: Wiring, verdicts: Mapping[Role, Verdict]) -> Iterator[str]:
    """Facts that vLLM derives otherwise than the operator says."""
    for role, verdict in verdicts.items():
        predicted = dataclasses.asdict(predict(wiring, wiring.instances[role]))
        for name, value in predicted.items() if verdict.accepted else ():
            if verdict.derived[name] != value:
                yield f"epd predicts {name} {value} of {role}, vLLM derives {verdict.derived[name]}"


def _print(disagreement: Disagreement) -> None:
    print(disagreement, flush=True)  # noqa: T201  (the command's output)


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--count", type=int, default=3000, help="objects a release")
    options.add_argument("--release", action="append", help="major.minor; all where none is given")
    given = options.parse_args()
    worst = 0
    with tempfile.TemporaryDirectory() as directory:
        folders = models.write(Path(directory) / "models")
        for release in given.release or fetch.pinned():
            with oracle(release, "cuda") as cuda, oracle(release, "cpu") as cpu:
                known = capabilities(Release.parse(release))
                both = {"cuda": cuda, "cpu": cpu}
                report = sweep(both, folders, known, seed=given.seed, count=given.count, tell=_print)
            print(  # noqa: T201
                f"vLLM {release}: {report.objects} objects, {report.roles} roles asked, {report.accepted} accepted, "
                f"{len(report.disagreements)} disagreements; rules that spoke: {dict(report.rules.most_common())}"
            )
            worst += len(report.disagreements)
    return 1 if worst else 0


if __name__ == "__main__":
    sys.exit(main())
