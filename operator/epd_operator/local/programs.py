"""A plan becomes the programs of one run: `vllm serve` for each instance, and the proxy.

What differs from pods is here and in `Site`: addresses, ports, directories, who hands out keys and devices.
"""

import importlib.util
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from epd_operator.api.role import Role
from epd_operator.engine.command import command
from epd_operator.engine.environment import Variable
from epd_operator.engine.instance import Instance
from epd_operator.engine.site import Ports, Site
from epd_operator.local.devices import VISIBLE, Demand
from epd_operator.local.errors import LocalError
from epd_operator.local.ports import ADDRESS, HeldPorts
from epd_operator.local.vllm import Vllm
from epd_operator.local.workspace import Workspace
from epd_operator.plan.plan import Plan, RolePlan

PROXY = "proxy"
PROXY_DRAIN_SECONDS = 5
"""How long requests may still take once the run is asked to stop: nobody is routed elsewhere meanwhile."""
_RUN_PROXY = "from epd_proxy.main import main; raise SystemExit(main())"
_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")


@dataclass(frozen=True, slots=True)
class Program:
    """One process to start."""

    name: str
    """Of the instance: encode-0, proxy."""
    role: Role | None
    """None for the proxy."""
    argv: tuple[str, ...]
    env: Mapping[str, str]
    """The whole environment."""
    port: int
    """HTTP, on the loopback address."""
    log: Path
    model: str
    """What it must serve to be ready."""
    key: str | None
    """The key that it asks for; None where it asks for none."""
    startup_seconds: int
    """How long it may take until it serves."""

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://{ADDRESS}:{self.port}"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run brings along: programs, places, ports and keys."""

    vllm: Vllm
    workspace: Workspace
    ports: HeldPorts
    environ: Mapping[str, str]
    models: Path | None
    """Stands in for the model volume."""
    api_keys: Path | None
    """File of the keys that clients may present; None: no key is asked."""
    engine_key: str
    """The key that the engines ask for."""
    engine_key_file: Path
    shares: Mapping[str, Mapping[str, str]]
    """For each instance the variables that give it its devices."""


def instances(plan: Plan) -> Iterator[tuple[str, RolePlan]]:
    """The name of every engine instance, and its role's plan."""
    for role in plan.roles:
        yield from ((f"{role.role}-{index}", role) for index in range(role.replicas))


def demands(plan: Plan) -> list[Demand]:
    """The devices that the instances take, without those of roles for which the user's env chooses them."""
    wanted = []
    for name, role in instances(plan):
        instance = plan.wiring.instances[role.role]
        if VISIBLE.get(instance.device_type) not in instance.env:
            wanted.append(Demand(name, instance.device_type, instance.devices))
    return wanted


def engine_programs(plan: Plan, around: Surroundings) -> list[Program]:
    """The engines. Raises LocalError where the object needs what only a cluster has."""
    return [_engine(plan, name, role, around) for name, role in instances(plan)]


def _engine(plan: Plan, name: str, role: RolePlan, around: Surroundings) -> Program:
    instance = plan.wiring.instances[role.role]
    site = _site(instance, around)
    told = command(plan.wiring, role.role, site)
    env = dict(around.environ) | {
        "TMPDIR": str(around.workspace.temporary(name)),
        "VLLM_API_KEY": around.engine_key,
        # vLLM listens for its own processes on this address; unset, it takes one that other machines reach.
        "VLLM_HOST_IP": ADDRESS,
        "POD_IP": ADDRESS,
    }
    env |= around.shares.get(name, {})
    for variable in told.env:
        env[variable.name] = expand(_value(variable, around.environ), env)
    return Program(
        name=name,
        role=role.role,
        argv=(str(around.vllm.program), "serve", *(expand(word, env) for word in told.argv)),
        env=env,
        port=site.ports.http,
        log=around.workspace.log(name),
        model=plan.proxy.served_name,
        key=around.engine_key,
        startup_seconds=role.startup_seconds,
    )


def _site(instance: Instance, around: Surroundings) -> Site:
    ranks = instance.tensor * instance.data
    return Site(
        local=True,
        models=str(around.models) if around.models else "/models",
        embeddings_directory=str(around.workspace.embeddings),
        kv_directory=str(around.workspace.kv),
        address=ADDRESS,
        ports=Ports(
            http=around.ports.take(),
            embeddings_side_channel=around.ports.take(),
            kv_side_channel=around.ports.take(instance.data),
            embeddings_push=around.ports.take(ranks),
            mooncake_bootstrap=around.ports.take(),
        ),
    )


def _value(variable: Variable, environ: Mapping[str, str]) -> str:
    if variable.source is None:
        return variable.value or ""
    # What a pod gets from a Secret, a ConfigMap or its own status the caller of `epd run` hands over by name.
    if variable.name in environ:
        return environ[variable.name]
    raise LocalError(
        f"{variable.reason}: {variable.name} comes from {variable.shown}, which only a cluster has; set that variable "
        "in the environment of `epd run`"
    )


def expand(text: str, env: Mapping[str, str]) -> str:
    """Put variables in for $(NAME), as the kubelet does: $$ is a dollar sign, an unknown name stays as it is.

    https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
    """
    return _REFERENCE.sub(lambda found: "$" if found[1] is None else env.get(found[1], found[0]), text)


def check_model(plan: Plan, models: Path | None) -> None:
    """A model that is a path must be there. Raises LocalError where it is not."""
    model_id = plan.wiring.deployment.spec.model.id
    if not model_id.startswith(("/", "./")):
        return
    if models is None:
        raise LocalError(
            f"spec.model.id {model_id} is a path inside the model volume, which only a cluster has; name the directory "
            "that stands for the volume by --models"
        )
    folder = models / model_id.removeprefix(".").strip("/")
    if not (folder / "config.json").is_file():
        raise LocalError(
            f"spec.model.id {model_id}: {folder} is no model, it holds no config.json; name the directory above it by "
            "--models"
        )


def proxy_program(plan: Plan, engines: Iterable[Program], port: int, around: Surroundings) -> Program:
    """The proxy in front of the engines. Raises LocalError where the proxy is not installed."""
    if importlib.util.find_spec("epd_proxy") is None or importlib.util.find_spec("uvloop") is None:
        raise LocalError("the proxy is not installed; install epd-operator with the extra `run`")
    engines = list(engines)
    workspace = around.workspace
    _, uuid_key = workspace.new_key("uuid-key")
    # -P: a file of the user's directory must not stand in for a module of the standard library.
    argv = [sys.executable, "-P", "-c", _RUN_PROXY, "--config", str(workspace.write("proxy.yaml", _config(plan)))]
    argv += ["--host", ADDRESS, "--port", str(port)]
    for role in plan.wiring.instances:
        argv += [f"--{role}", ",".join(engine.url for engine in engines if engine.role is role)]
    argv += ["--engine-key-file", str(around.engine_key_file), "--uuid-key-file", str(uuid_key)]
    consumer = plan.wiring.instances[plan.wiring.consumer]
    argv += ["--data-parallel-size", str(consumer.data), "--tensor-parallel-size", str(consumer.tensor)]
    if around.api_keys is not None:
        argv += ["--api-keys-file", str(around.api_keys)]
    for flag, connector in (
        ("--embeddings-connector", plan.defaults.embeddings_connector),
        ("--kv-connector", plan.defaults.kv_connector),
    ):
        argv += [flag, connector] if connector else []
    return Program(
        name=PROXY,
        role=None,
        argv=tuple(argv),
        env=dict(around.environ) | {"TMPDIR": str(workspace.temporary(PROXY))},
        port=port,
        log=workspace.log(PROXY),
        model=plan.proxy.served_name,
        key=_first_key(around.api_keys),
        startup_seconds=60,
    )


def _config(plan: Plan) -> str:
    """The proxy's configuration document; JSON is YAML."""
    document = {
        "apiVersion": "proxy.epd.dev/v1alpha1",
        "kind": "ProxyConfig",
        **plan.proxy.settings,
        "servedNames": [plan.proxy.served_name],
        "roles": [str(role) for role in plan.proxy.roles],
        "timeouts": {
            "engineKeepAliveSeconds": plan.proxy.keep_alive_seconds,
            **plan.proxy.settings.get("timeouts", {}),
        },
        "drain": {"timeoutSeconds": PROXY_DRAIN_SECONDS},
    }
    return json.dumps(document, indent=2)


def _first_key(api_keys: Path | None) -> str | None:
    if api_keys is None:
        return None
    lines = api_keys.read_text(encoding="utf-8").split()
    return lines[0] if lines else None
