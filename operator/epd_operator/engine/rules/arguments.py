"""Rules about the flags that a user adds."""

from collections.abc import Iterator

from epd_operator.api.finding import Severity
from epd_operator.engine.command import wired_flags
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

OWNED = {
    "--model": "spec.model.id",
    "--model-tag": "spec.model.id",
    "--revision": "spec.model.revision",
    "--served-model-name": "spec.model.servedName",
    "--host": "the operator (all addresses of the pod)",
    "--port": "the operator (8000)",
    "--uds": "the operator (HTTP on a port)",
    "--root-path": "the operator (the proxy asks at /)",
    "--ssl-keyfile": "the operator (HTTP inside the cluster)",
    "--ssl-certfile": "the operator (HTTP inside the cluster)",
    "--api-key": "the operator (a Secret made once)",
    "--headless": "the operator (every instance serves HTTP)",
    "--tensor-parallel-size": "parallelism.tensor of the role",
    "--pipeline-parallel-size": "parallelism.pipeline of the role",
    "--data-parallel-size": "parallelism.data of the role",
    "--ec-transfer-config": "spec.transfer.embeddings",
    "--kv-transfer-config": "spec.transfer.kv",
    "--mm-tensor-ipc": "spec.encode.preprocessing.tensorIPC",
    "--mm-processor-device": "spec.encode.preprocessing.device",
    "--mm-encoder-only": "the operator (from the roles present)",
    "--shutdown-timeout": "drainTimeoutSeconds of the role",
    "--allowed-media-domains": "spec.proxy.media.allowedDomains",
    "--enable-mm-embeds": "the operator (from the roles present)",
}
"""Flags of the wiring, and what decides them instead."""


@rule(
    id="args-clash-with-wiring",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="User args do not set what the operator sets so that the roles meet.",
    why="One of the two would silently win: the roles would not find each other, or probes and proxy not the engine.",
    source="the plan",
    needs_release=True,
)
def args_clash(wiring: Wiring) -> Iterator[Broken]:
    """A flag of the wiring among the user's, however it is spelled."""
    seen: set[str] = set()
    for role, instance in wiring.instances.items():
        wired = wired_flags(wiring, role)
        for argument in instance.args.arguments:
            path = instance.arg_path(argument)
            if argument.name not in OWNED or path in seen:
                continue
            seen.add(path)
            own = wired.get(argument.name)
            sets = f"; the operator writes {' '.join(own.words)[:160]}" if own else ""
            message = f"{argument.name} is decided by {OWNED[argument.name]}{sets}"
            yield Broken(path, argument.text, message, f"remove it and use {OWNED[argument.name]}")


RULES = (args_clash,)
