"""The environment of one vLLM instance: each variable with the reason why it is there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from epd_operator.api import names
from epd_operator.api.role import TensorIPC
from epd_operator.engine import connectors
from epd_operator.engine.instance import Instance
from epd_operator.engine.secrets import is_secret
from epd_operator.engine.site import Site
from epd_operator.engine.wiring import Wiring

KEEP_ALIVE_SECONDS = 120
"""VLLM_HTTP_TIMEOUT_KEEP_ALIVE: the proxy closes idle connections after half of it, so it never meets a closed one."""
CACHE = "/cache"
DEFAULT_STARTUP_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable: a value, or a source in Kubernetes' shape (EnvVarSource)."""

    name: str
    value: str | None
    reason: str
    source: Mapping[str, Any] | None = None
    wired: bool = False
    """Part of what makes the roles meet: the user's env may not replace it."""

    @property
    def shown(self) -> str:
        """The value, or where it comes from, for people: $(status.podIP), $(secret name/key); no secret."""
        if self.source is None:
            return "***" if self.value and is_secret(self.name) else self.value or ""
        if "fieldRef" in self.source:
            return f"$({self.source['fieldRef'].get('fieldPath', '')})"
        for kind, word in (("secretKeyRef", "secret"), ("configMapKeyRef", "configmap")):
            if kind in self.source and isinstance(self.source[kind], Mapping):
                return f"$({word} {self.source[kind].get('name', '')}/{self.source[kind].get('key', '')})"
        return f"$({', '.join(self.source)})"


def environment(wiring: Wiring, instance: Instance, site: Site) -> tuple[Variable, ...]:
    """Defaults, then what the user wrote; a variable of the wiring stays as it is (a rule reports the clash)."""
    own = {variable.name: variable for variable in _own(wiring, instance, site)}
    written = {
        name: Variable(name, entry.variable.value, entry.path, entry.variable.value_from)
        for name, entry in instance.env.items()
        if not (name in own and own[name].wired)
    }
    return tuple((own | written).values())


def wired_variables(wiring: Wiring, instance: Instance, site: Site) -> dict[str, Variable]:
    """The variables of an instance that the user's env may not touch."""
    return {variable.name: variable for variable in _own(wiring, instance, site) if variable.wired}


def _own(wiring: Wiring, instance: Instance, site: Site) -> Iterator[Variable]:
    if not site.local:
        yield from _pod_variables(wiring)
    yield Variable("VLLM_NO_USAGE_STATS", "1", "no usage reports leave the cluster")
    yield Variable("DO_NOT_TRACK", "1", "no usage reports leave the cluster")
    why = "longer than the proxy keeps an idle connection"
    yield Variable("VLLM_HTTP_TIMEOUT_KEEP_ALIVE", str(KEEP_ALIVE_SECONDS), why, wired=True)
    why = "a redirect would lead around the media policy"
    yield Variable("VLLM_MEDIA_URL_ALLOW_REDIRECTS", "0", why, wired=True)
    startup = instance.spec.startup_timeout_seconds or DEFAULT_STARTUP_SECONDS
    yield Variable("VLLM_ENGINE_READY_TIMEOUT_S", str(startup), "as long as the startup probe waits")
    if instance.tensor_ipc is TensorIPC.TORCH_SHM:
        why = "vLLM refuses torch_shm with any other start method"
        yield Variable("VLLM_WORKER_MULTIPROC_METHOD", "spawn", why, wired=True)
    yield from _transfer_variables(wiring, instance, site)


def _pod_variables(wiring: Wiring) -> Iterator[Variable]:
    yield _field("POD_IP", "status.podIP", "address that peers are told")
    secret = {"secretKeyRef": {"name": names.engine_key_secret(wiring.deployment.name), "key": names.SECRET_KEY}}
    yield Variable("VLLM_API_KEY", None, "only the proxy may use the engines", secret, wired=True)
    writable = "writable under a read-only root"
    yield Variable("HOME", f"{CACHE}/home", writable)
    yield Variable("XDG_CACHE_HOME", f"{CACHE}/xdg", writable)
    yield Variable("VLLM_CACHE_ROOT", f"{CACHE}/vllm", writable)
    yield Variable("TRITON_CACHE_DIR", f"{CACHE}/triton", writable)
    yield Variable("TORCHINDUCTOR_CACHE_DIR", f"{CACHE}/inductor", writable)
    model = wiring.deployment.spec.model
    if model.volume is not None and not model.id.startswith(("/", "./")):
        yield Variable("HF_HOME", "/models/huggingface", "downloads are kept on the model volume")
    else:
        yield Variable("HF_HOME", f"{CACHE}/huggingface", writable)
    if model.token_secret_ref is not None:
        ref = {"secretKeyRef": {"name": model.token_secret_ref.name, "key": model.token_secret_ref.key}}
        yield Variable("HF_TOKEN", None, "spec.model.tokenSecretRef", ref, wired=True)


def _transfer_variables(wiring: Wiring, instance: Instance, site: Site) -> Iterator[Variable]:
    pod_ip = "peers connect to this address; vLLM's default is localhost"
    if instance.kv_role is not None and wiring.kv is not None:
        yield _address("VLLM_NIXL_SIDE_CHANNEL_HOST", site, pod_ip)
        port = str(site.ports.kv_side_channel)
        yield Variable("VLLM_NIXL_SIDE_CHANNEL_PORT", port, "KV side channel, plus the data-parallel rank", wired=True)
        if wiring.kv.connector == connectors.KV_MOONCAKE:
            port = str(site.ports.mooncake_bootstrap)
            yield Variable("VLLM_MOONCAKE_BOOTSTRAP_PORT", port, "bootstrap of Mooncake's KV transfer", wired=True)
    if instance.ec_role is None or wiring.embeddings is None:
        return
    if wiring.embeddings.connector == connectors.EC_CPU:
        yield _address("VLLM_EC_SIDE_CHANNEL_HOST", site, pod_ip)
        port = str(site.ports.embeddings_side_channel)
        yield Variable("VLLM_EC_SIDE_CHANNEL_PORT", port, "away from 5601, the KV side channel of rank 1", wired=True)
        if wiring.release is None or wiring.release.is_within(connectors.EC_CPU_NIXL_SINCE):
            yield Variable("VLLM_USE_V2_MODEL_RUNNER", "1", "ECCPUConnector requires it", wired=True)


def _field(name: str, path: str, reason: str) -> Variable:
    return Variable(name, None, reason, {"fieldRef": {"fieldPath": path}}, wired=True)


def _address(name: str, site: Site, reason: str) -> Variable:
    if site.local:
        return Variable(name, site.address, reason, wired=True)
    return _field(name, "status.podIP", reason)
