"""What an object means for vLLM: topology, release, transfers, and one instance a role. Never raises."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from epd_operator.api.deployment import EPDDeployment
from epd_operator.api.device import Device, DeviceType
from epd_operator.api.pod import EnvVar
from epd_operator.api.role import Role, RoleSpec, Topology
from epd_operator.engine import connectors
from epd_operator.engine.capabilities import Capabilities, capabilities
from epd_operator.engine.flags import parse_args
from epd_operator.engine.instance import Instance, UserEnv
from epd_operator.engine.model_facts import ModelFacts, facts_of
from epd_operator.engine.release import Release

NEWEST = Release(9999, 0)
"""Newer than every table, so served by the newest one."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Defaults chosen for the object earlier and recorded in its status: they stay."""

    embeddings_connector: str | None = None
    kv_connector: str | None = None


@dataclass(frozen=True, slots=True)
class TransferChoice:
    """One transfer between roles."""

    connector: str
    """vLLM's name."""
    chosen: bool
    """The operator chose it; the user named none."""
    extra: Mapping[str, Any]
    """The user's extra config, vLLM's keys."""
    path: str
    """spec.transfer.embeddings or spec.transfer.kv."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """An object as vLLM will see it."""

    deployment: EPDDeployment
    local: bool
    release: Release | None
    """None where neither version nor image tag names one."""
    capabilities: Capabilities
    """Of the release; of the newest one known where there is no release."""
    topology: Topology
    embeddings: TransferChoice | None
    kv: TransferChoice | None
    model: ModelFacts
    """What is known of the model without its weights."""
    instances: Mapping[Role, Instance] = field(default_factory=dict)

    @property
    def takes_media(self) -> bool:
        """Whether the model is multimodal; an unknown one is taken for it."""
        return self.capabilities.multimodal(self.model.architecture or "") is not False

    @property
    def consumer(self) -> Role:
        """The role that consumes embeddings."""
        return Role.PREFILL if Role.PREFILL in self.instances else Role.DECODE

    def embeddings_by(self, connector: str) -> TransferChoice | None:
        """The transfer of embeddings, if it is by that connector."""
        return self.embeddings if self.embeddings is not None and self.embeddings.connector == connector else None


def wire(
    deployment: EPDDeployment,
    *,
    local: bool = False,
    defaults: Defaults | None = None,
    model_config: Mapping[str, Any] | None = None,
) -> Wiring:
    """Resolve an object.

    `local`: for processes on this machine instead of pods. `model_config`: the model's config.json, where it is at
    hand.
    """
    spec = deployment.spec
    release = release_of(deployment)
    known = capabilities(release or NEWEST)
    roles = spec.roles()
    topology = Topology.of(encode=Role.ENCODE in roles, prefill=Role.PREFILL in roles)
    kept = defaults or Defaults()
    return Wiring(
        deployment=deployment,
        local=local,
        release=release,
        capabilities=known,
        topology=topology,
        embeddings=_embeddings(deployment, release, kept, local=local) if Role.ENCODE in roles else None,
        kv=_kv(deployment, kept) if Role.PREFILL in roles else None,
        model=facts_of(spec.model.architecture, model_config),
        instances=MappingProxyType({role: _instance(deployment, role, known) for role in roles}),
    )


def release_of(deployment: EPDDeployment) -> Release | None:
    """The release that the object names: engine.version, else the image's tag."""
    engine = deployment.spec.engine
    if engine.version is not None:
        try:
            return Release.parse(engine.version)
        except ValueError:
            return None
    return Release.of_image(engine.image) if engine.image else None


def device_of(deployment: EPDDeployment, role: Role) -> Device:
    """The device of a role: its own fields; spec.device's too where the types agree."""
    common = deployment.spec.device or Device()
    own = getattr(deployment.spec.role(role), "device", None)
    if own is None:
        return common.model_copy(update={"type": common.type or DeviceType.CUDA})
    device_type = own.type or common.type or DeviceType.CUDA
    base = common if device_type == (common.type or DeviceType.CUDA) else Device()
    update = {name: value for name in type(own).model_fields if (value := getattr(own, name)) is not None}
    return base.model_copy(update={**update, "type": device_type})


def _embeddings(deployment: EPDDeployment, release: Release | None, kept: Defaults, *, local: bool) -> TransferChoice:
    transfer = deployment.spec.transfer
    embeddings = transfer.embeddings if transfer else None
    named = embeddings.connector if embeddings else None
    connector = named or kept.embeddings_connector or _default_embeddings(deployment, release, local=local)
    extra = (embeddings.extra_config if embeddings else None) or {}
    return TransferChoice(connector, named is None, MappingProxyType(extra), "spec.transfer.embeddings")


def _default_embeddings(deployment: EPDDeployment, release: Release | None, *, local: bool) -> str:
    """The published default: see docs/connectors.md."""
    transfer = deployment.spec.transfer
    has_claim = bool(transfer and transfer.embeddings and transfer.embeddings.volume)
    consumer = Role.PREFILL if deployment.spec.prefill is not None else Role.DECODE
    on_cpu = any(device_of(deployment, role).type is DeviceType.CPU for role in (Role.ENCODE, consumer))
    old = release is not None and release.minor_key < connectors.EC_CPU_NIXL_SINCE.minor_key
    if has_claim or local or on_cpu or old:
        return connectors.EC_EXAMPLE
    return connectors.EC_CPU


def _kv(deployment: EPDDeployment, kept: Defaults) -> TransferChoice:
    transfer = deployment.spec.transfer
    kv = transfer.kv if transfer else None
    named = kv.connector if kv else None
    extra = (kv.extra_config if kv else None) or {}
    connector = named or kept.kv_connector or connectors.KV_DEFAULT
    return TransferChoice(connector, named is None, MappingProxyType(extra), "spec.transfer.kv")


def _instance(deployment: EPDDeployment, role: Role, known: Capabilities) -> Instance:
    spec = deployment.spec.role(role) or RoleSpec()
    ec_role, kv_role = transfer_roles(
        role, encode=deployment.spec.encode is not None, prefill=deployment.spec.prefill is not None
    )
    engine = deployment.spec.engine
    lists = (("spec.engine.args", engine.args or []), (f"spec.{role}.args", spec.args or []))
    words = [(f"{path}[{index}]", word) for path, args in lists for index, word in enumerate(args)]
    own_device = spec.device is not None and spec.device.type is not None
    return Instance(
        role=role,
        spec=spec,
        device=device_of(deployment, role),
        device_path=f"spec.{role}.device.type" if own_device else "spec.device.type",
        ec_role=ec_role,
        kv_role=kv_role,
        args=parse_args([word for _, word in words], known),
        arg_paths=tuple(path for path, _ in words),
        words=tuple(word for _, word in words),
        env=MappingProxyType(_environment(engine.env, "spec.engine.env") | _environment(spec.env, f"spec.{role}.env")),
    )


def transfer_roles(role: Role, *, encode: bool, prefill: bool) -> tuple[str | None, str | None]:
    """EC and KV role of an instance; all four topologies derive from which roles there are (design of EPD, vLLM docs).

    With prefill, decode has no EC config: its embeddings come with the KV blocks.
    """
    if role is Role.ENCODE:
        return "ec_producer", None
    if role is Role.PREFILL:
        return "ec_consumer" if encode else None, "kv_producer"
    return "ec_consumer" if encode and not prefill else None, "kv_consumer" if prefill else None


def _environment(variables: list[EnvVar] | None, path: str) -> dict[str, UserEnv]:
    return {variable.name: UserEnv(f"{path}[{index}]", variable) for index, variable in enumerate(variables or [])}
