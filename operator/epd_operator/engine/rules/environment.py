"""Rules about the environment variables that a user adds."""

from collections.abc import Iterator, Mapping

from epd_operator.api.device import DeviceType
from epd_operator.api.finding import Severity
from epd_operator.api.pod import EnvVar
from epd_operator.engine.capabilities import nearest
from epd_operator.engine.connectors import V2_ON_CPU_SINCE
from epd_operator.engine.environment import Variable, wired_variables
from epd_operator.engine.instance import Instance
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.site import POD
from epd_operator.engine.wiring import Wiring

FORBIDDEN = {
    "VLLM_PORT": "it is the base of vLLM's internal ports, not the API's",
    "VLLM_HOST_IP": "the pod's own address is the only right one",
    "VLLM_SERVER_DEV_MODE": "it opens endpoints that reset caches and run code without a key",
}
"""Variables that the operator does not set and nobody should."""
VALIDATION = "--fail-on-environ-validation"


@rule(
    id="env-clash-with-wiring",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="User env does not set what the operator sets so that the roles meet.",
    why="One of the two would silently win: peers would be told an address at which nobody listens.",
    source="the plan",
)
def env_clash(wiring: Wiring) -> Iterator[Broken]:
    """A variable of the wiring among the user's; one that says the same is none."""
    for instance in wiring.instances.values():
        wired = wired_variables(wiring, instance, POD)
        for name, entry in instance.env.items():
            own = wired.get(name)
            if own is None or _says_the_same(own, entry.variable):
                continue
            message = f"the operator sets it to {own.shown}: {own.reason}"
            yield Broken(entry.path, entry.shown, message, "remove it")


def _says_the_same(own: Variable, written: EnvVar) -> bool:
    return own.value == written.value and own.source == written.value_from


@rule(
    id="env-forbidden",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="Variables that break vLLM in a pod, or open it, are not set.",
    why="VLLM_PORT moves internal ports, VLLM_SERVER_DEV_MODE opens endpoints without a key.",
    source="vLLM 0.33 envs.py",
)
def env_forbidden(wiring: Wiring) -> Iterator[Broken]:
    """A variable of the short list."""
    for instance in wiring.instances.values():
        for name, entry in instance.env.items():
            off = name == "VLLM_SERVER_DEV_MODE" and entry.variable.value in (None, "", "0")
            if name in FORBIDDEN and not off:
                yield Broken(entry.path, entry.shown, FORBIDDEN[name], "remove it")


@rule(
    id="env-value-and-source",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="A variable has a value or a source, not both.",
    why="The API server refuses the pod.",
    source="Kubernetes: EnvVar",
)
def env_value_and_source(wiring: Wiring) -> Iterator[Broken]:
    """Both are written."""
    for instance in wiring.instances.values():
        for name, entry in instance.env.items():
            both = entry.variable.value is not None and entry.variable.value_from is not None
            if both:
                yield Broken(entry.path, name, "has value and valueFrom, and the API server refuses both", "keep one")


SOURCES = {
    "fieldRef": ("fieldPath",),
    "resourceFieldRef": ("resource",),
    "configMapKeyRef": ("name", "key"),
    "secretKeyRef": ("name", "key"),
    "fileKeyRef": ("volumeName", "path", "key"),
}
"""Kubernetes' EnvVarSource: each source, and the fields that it needs."""


@rule(
    id="env-source-malformed",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="valueFrom names one source, with the fields that it needs.",
    why="The API server refuses the pod.",
    source="Kubernetes: EnvVarSource; asked of 1.37",
)
def env_source_malformed(wiring: Wiring) -> Iterator[Broken]:
    """None, several or an unknown source, or one that lacks a field."""
    for instance in wiring.instances.values():
        for entry in instance.env.values():
            written = entry.variable.value_from
            if written is None or entry.variable.value is not None:
                continue
            path = f"{entry.path}.valueFrom"
            if len(written) != 1 or not written.keys() <= SOURCES.keys():
                message = f"must name one of {', '.join(SOURCES)}, and the API server refuses the pod"
                yield Broken(
                    path, written, message, "write one source, for example {secretKeyRef: {name: ..., key: ...}}"
                )
                continue
            ((kind, source),) = written.items()
            needed = SOURCES[kind]
            if not isinstance(source, Mapping) or not all(isinstance(source.get(name), str) for name in needed):
                shape = ", ".join(f"{name}: ..." for name in needed)
                message = f"needs {' and '.join(needed)} as text, and the API server refuses the pod"
                yield Broken(f"{path}.{kind}", source, message, f"write {{{shape}}}")


@rule(
    id="v2-runner-on-cpu",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="VLLM_USE_V2_MODEL_RUNNER=1 is not set for instances on CPU.",
    why='vLLM refuses to start: "Model Runner V2 requires Triton".',
    source="vLLM 0.28 to 0.32 config/vllm.py, _validate_v2_model_runner; asked",
    until=V2_ON_CPU_SINCE,
    proved=True,
    needs_release=True,
)
def v2_runner_on_cpu(wiring: Wiring) -> Iterator[Broken]:
    """The variable, on an instance without an accelerator."""
    for role, instance in wiring.instances.items():
        entry = instance.env.get("VLLM_USE_V2_MODEL_RUNNER")
        if entry is None or instance.device_type is not DeviceType.CPU:
            continue
        if entry.variable.value not in (None, "", "0"):
            message = f"the V2 model runner needs Triton, and {role} runs on CPU (vLLM refuses to start)"
            yield Broken(entry.path, f"{entry.variable.name}={entry.variable.value}", message, "remove it")


@rule(
    id="env-unknown",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="A variable that begins with VLLM_ is one that the release reads.",
    why="vLLM ignores others; most often the name is misspelled, or the variable is gone.",
    source="vLLM envs.py, each release",
    needs_release=True,
)
def env_unknown(wiring: Wiring) -> Iterator[Broken]:
    """A variable that no line of vLLM's envs.py names."""
    for instance in wiring.instances.values():
        if not instance.user_value(VALIDATION):
            yield from _unread(wiring, instance, "ignores it")


@rule(
    id="env-unknown-refused",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="With --fail-on-environ-validation, each variable that begins with VLLM_ is one that the release reads.",
    why="vLLM refuses to start: Unknown vLLM environment variable detected.",
    source="vLLM envs.py, validate_environ, 0.28 to 0.33",
    proved=True,
    needs_release=True,
)
def env_unknown_refused(wiring: Wiring) -> Iterator[Broken]:
    """The same, where the user asks for refusal."""
    for instance in wiring.instances.values():
        if instance.user_value(VALIDATION):
            yield from _unread(wiring, instance, f"with {VALIDATION} refuses to start")


def _unread(wiring: Wiring, instance: Instance, then: str) -> Iterator[Broken]:
    known = wiring.capabilities.env
    for name, entry in instance.env.items():
        if name.startswith("VLLM_") and name not in known:
            near = nearest(name, known)
            message = f"vLLM {wiring.release} reads no such variable and {then}"
            yield Broken(entry.path, name, message, f"rename it to {near}" if near else "remove it")


RULES = (
    v2_runner_on_cpu,
    env_clash,
    env_forbidden,
    env_value_and_source,
    env_source_malformed,
    env_unknown,
    env_unknown_refused,
)
