"""The volumes of an engine's pod."""

from collections.abc import Iterator

from epd_operator.api.quantity import Quantity
from epd_operator.api.volume import ModelVolume, SharedVolume
from epd_operator.engine import connectors
from epd_operator.engine.environment import CACHE
from epd_operator.engine.instance import Instance
from epd_operator.engine.memory import shared_memory_bytes
from epd_operator.engine.site import POD, Site
from epd_operator.engine.wiring import Wiring
from epd_operator.plan.plan import Mount


def mounts_of(wiring: Wiring, instance: Instance) -> tuple[Mount, ...]:
    """Shared memory, writable directories, the model volume, and the shared directories that the role takes part in."""
    return tuple(_mounts(wiring, instance))


def _mounts(wiring: Wiring, instance: Instance) -> Iterator[Mount]:
    size = str(Quantity.of_bytes(shared_memory_bytes(wiring, instance)))
    yield Mount("shm", "/dev/shm", {"emptyDir": {"medium": "Memory", "sizeLimit": size}})  # noqa: S108
    yield Mount("cache", CACHE, {"emptyDir": {}})
    yield Mount("tmp", "/tmp", {"emptyDir": {}})  # noqa: S108
    model = wiring.deployment.spec.model
    if model.volume is not None:
        holds_weights = model.id.startswith(("/", "./"))
        yield Mount("models", POD.models, _source(model.volume), read_only=holds_weights)
    embeddings = embeddings_volume(wiring)
    if embeddings is not None and instance.ec_role is not None:
        yield Mount("embeddings", POD.embeddings_directory, _source(embeddings))
    kv = kv_volume(wiring)
    if kv is not None and instance.kv_role is not None:
        yield Mount("kv", POD.kv_directory, _source(kv))


def embeddings_volume(wiring: Wiring) -> SharedVolume | None:
    """The shared directory of the embeddings connector, if it uses one and has one."""
    transfer = wiring.deployment.spec.transfer
    choice = wiring.embeddings
    if choice is None or not connectors.embeddings_needs(choice.connector).shared_directory:
        return None
    return transfer.embeddings.volume if transfer and transfer.embeddings else None


def kv_volume(wiring: Wiring) -> SharedVolume | None:
    """The shared directory of the KV connector, if it uses one and has one; by default that of the embeddings."""
    transfer = wiring.deployment.spec.transfer
    if wiring.kv is None or not connectors.kv_needs(wiring.kv.connector).shared_directory or transfer is None:
        return None
    if transfer.kv is not None and transfer.kv.volume is not None:
        return transfer.kv.volume
    return transfer.embeddings.volume if transfer.embeddings else None


def shared_directories(wiring: Wiring, instance: Instance, site: Site) -> tuple[str, ...]:
    """The directories in shared volumes that an instance writes below."""
    uses = (
        (instance.ec_role, embeddings_volume(wiring), site.embeddings_directory),
        (instance.kv_role, kv_volume(wiring), site.kv_directory),
    )
    return tuple(directory for role, volume, directory in uses if role is not None and volume is not None)


def _source(volume: ModelVolume | SharedVolume) -> dict[str, object]:
    return volume.model_dump(mode="json", by_alias=True, exclude_none=True)
