"""Rules about the flags that a user adds."""

from collections.abc import Iterator
from typing import NamedTuple

from epd_operator.api.finding import Severity
from epd_operator.engine.command import wired_flags
from epd_operator.engine.instance import Instance
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.secrets import FLAGS
from epd_operator.engine.wiring import Wiring


class Owner(NamedTuple):
    """What decides a flag of the wiring."""

    decides: str
    """Completes "it is decided by ..."; {role} stands for the role."""
    instead: str = ""
    """What to do instead; empty where there is nothing to do."""


def _field(path: str) -> Owner:
    return Owner(path, f"set {path}")


OWNED = {
    "--model": _field("model.id"),
    "--model-tag": _field("model.id"),
    "--revision": _field("model.revision"),
    "--served-model-name": _field("model.servedName"),
    "--host": Owner("the operator: an engine listens on all addresses of its pod"),
    "--port": Owner("the operator: an engine listens on port 8000 of its pod"),
    "--uds": Owner("the operator: an engine listens on a port"),
    "--root-path": Owner("the operator: the proxy asks at /"),
    "--ssl-keyfile": Owner("the operator: engines speak plain HTTP to the proxy"),
    "--ssl-certfile": Owner("the operator: engines speak plain HTTP to the proxy"),
    "--api-key": Owner("the operator: it makes a Secret for engines and proxy", "set proxy.apiKeysSecretRef"),
    **dict.fromkeys(
        (
            "--nnodes",
            "--node-rank",
            "--master-addr",
            "--master-port",
            "--data-parallel-size-local",
            "--data-parallel-rank",
            "--data-parallel-start-rank",
            "--data-parallel-address",
            "--data-parallel-rpc-port",
            "--data-parallel-backend",
            "--data-parallel-external-lb",
            "--data-parallel-hybrid-lb",
            "--data-parallel-multi-port-external-lb",
            "--data-parallel-supervisor-port",
            "--device-ids",
        ),
        Owner("the operator: an instance is one pod, and has the devices of it"),
    ),
    "--prefill-context-parallel-size": Owner("the operator: devices are those of tensor, pipeline and data"),
    "--grpc": Owner("the operator: the proxy speaks HTTP"),
    "--grpc-port": Owner("the operator: the proxy speaks HTTP"),
    "--headless": Owner("the operator: every instance serves HTTP"),
    "--tensor-parallel-size": _field("{role}.parallelism.tensor"),
    "--pipeline-parallel-size": _field("{role}.parallelism.pipeline"),
    "--data-parallel-size": _field("{role}.parallelism.data"),
    "--ec-transfer-config": _field("transfer.embeddings"),
    "--kv-transfer-config": _field("transfer.kv"),
    "--mm-tensor-ipc": _field("encode.preprocessing.tensorIPC"),
    "--mm-processor-device": _field("encode.preprocessing.device"),
    "--mm-encoder-only": Owner("the operator, from the roles present"),
    "--shutdown-timeout": _field("{role}.drainTimeoutSeconds"),
    "--allowed-media-domains": _field("proxy.media.allowedDomains"),
    "--enable-mm-embeds": Owner("the operator, from the roles present"),
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
    for role, instance in wiring.instances.items():
        wired = wired_flags(wiring, role)
        for name, index, value in _written(instance):
            path, owner = instance.arg_paths[index], OWNED.get(name)
            if owner is None:
                continue
            place = str(role) if path.startswith(f"spec.{role}") else "<role>"
            own = wired.get(name)
            sets = f" (the operator writes {' '.join(own.words)[:160]})" if own else ""
            message = f"{name} is decided by {owner.decides}{sets}".replace("{role}", place)
            remedy = f"remove it and {owner.instead}" if owner.instead else "remove it"
            yield Broken(path, value, message, remedy.replace("{role}", place))


def _written(instance: Instance) -> Iterator[tuple[str, int, str]]:
    """Every flag that the user wrote, also without the value that it needs: name, position, and the words."""
    written = [(argument.name, argument.index, instance.written(argument)) for argument in instance.args.arguments]
    bad = [(problem.flag.name, problem.index) for problem in instance.args.problems if problem.flag is not None]
    written += [(name, index, instance.words[index]) for name, index in bad]
    for name, index, words in written:
        yield name, index, instance.words[index].partition("=")[0] if name in FLAGS else words


RULES = (args_clash,)
