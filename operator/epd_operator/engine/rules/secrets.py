"""Rules about secrets in places that many may read."""

from collections.abc import Iterator

from epd_operator.api.finding import Severity
from epd_operator.engine import secrets
from epd_operator.engine.rules.arguments import OWNED
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring


@rule(
    id="args-secret",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="No flag holds a secret.",
    why="Whoever may read the object, a pod, its processes or `epd explain` would read it; vLLM logs its flags.",
    source="vLLM entrypoints, log_non_default_args, each release; Kubernetes: good practices for Secrets",
    needs_release=True,
)
def args_secret(wiring: Wiring) -> Iterator[Broken]:
    """A token as the value of a flag; the value is not repeated."""
    for instance in wiring.instances.values():
        for given in instance.args.arguments:
            if given.name in secrets.FLAGS and given.name not in OWNED and any(given.texts):
                message = "its value is a secret, and flags are in the object, the pods and vLLM's log"
                yield Broken(instance.arg_path(given), given.name, message, "remove it and set model.tokenSecretRef")


@rule(
    id="env-secret",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="Variables that are named like a secret come from a Secret.",
    why="Whoever may read the object or its pods reads the value.",
    source="Kubernetes: good practices for Secrets",
)
def env_secret(wiring: Wiring) -> Iterator[Broken]:
    """A value written into env; it is not repeated."""
    for instance in wiring.instances.values():
        for name, entry in instance.env.items():
            if entry.variable.value and secrets.is_secret(name):
                remedy = f"use valueFrom: {{secretKeyRef: {{name: ..., key: ...}}}}{_instead(name)}"
                yield Broken(entry.path, name, "its value is in the object, for whoever may read that", remedy)


def _instead(name: str) -> str:
    return ", or set model.tokenSecretRef" if name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN") else ""


RULES = (args_secret, env_secret)
