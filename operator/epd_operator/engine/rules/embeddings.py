"""Rules about the transfer of embeddings."""

from collections.abc import Iterator

from epd_operator.api.finding import Severity
from epd_operator.api.role import Role
from epd_operator.engine import connectors
from epd_operator.engine.capabilities import nearest
from epd_operator.engine.images import default_image
from epd_operator.engine.memory import MIB, cache_size_of, ec_cpu_bytes, memory_limit
from epd_operator.engine.release import Release
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import TransferChoice, Wiring

_CONNECTOR = "spec.transfer.embeddings.connector"
_EXTRA = "spec.transfer.embeddings.extraConfig"


def _uses(wiring: Wiring, connector: str) -> TransferChoice | None:
    choice = wiring.embeddings
    return choice if choice is not None and choice.connector == connector else None


@rule(
    id="embeddings-connector-unknown",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="The embeddings connector must exist in the release.",
    why='The engine ends with "Unsupported connector type", after the image pull.',
    source="vLLM distributed/ec_transfer/ec_connector/factory.py, each release",
    proved=True,
    needs_release=True,
)
def connector_unknown(wiring: Wiring) -> Iterator[Broken]:
    """A connector that the release's factory does not register."""
    choice = wiring.embeddings
    known = wiring.capabilities.ec_connectors
    if choice is None or choice.chosen or choice.connector in known:
        return
    near = nearest(choice.connector, known)
    hint = f"did you mean {near}?" if near else f"use one of {', '.join(sorted(known))}"
    message = f"vLLM {wiring.release} has no such embeddings connector (the engine ends with an error)"
    yield Broken(_CONNECTOR, choice.connector, message, hint)


@rule(
    id="mooncake-embeddings-with-prefill",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="ECMooncakeConnector works only in E+PD.",
    why="The encoder pushes to the consumer that the proxy names; a prefill role in between gets no push.",
    source="vLLM 0.33 examples/disaggregated/disaggregated_encoder, ec_connector/mooncake",
    since=Release(0, 30),
)
def mooncake_with_prefill(wiring: Wiring) -> Iterator[Broken]:
    """Mooncake embeddings in E+P+D."""
    choice = _uses(wiring, connectors.EC_MOONCAKE)
    if choice is not None and Role.PREFILL in wiring.instances:
        message = "ECMooncakeConnector pushes to one combined prefill and decode instance, and this object has prefill"
        yield Broken(_CONNECTOR, choice.connector, message, "remove prefill or use ECCPUConnector")


@rule(
    id="mooncake-producer-single-rank",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="An encoder with ECMooncakeConnector has tensor, pipeline and data parallelism 1.",
    why="vLLM refuses to start.",
    source="vLLM 0.30 to 0.33 ec_connector/mooncake/config.py",
    since=Release(0, 30),
    proved=True,
)
def mooncake_producer_single_rank(wiring: Wiring) -> Iterator[Broken]:
    """More than one rank on the producing side."""
    instance = wiring.instances.get(Role.ENCODE)
    if instance is None or _uses(wiring, connectors.EC_MOONCAKE) is None:
        return
    for name in ("tensor", "pipeline", "data"):
        degree = getattr(instance, name)
        if degree > 1:
            message = f"an ECMooncakeConnector encoder needs {name} parallelism 1 (vLLM refuses to start)"
            yield Broken(f"spec.encode.parallelism.{name}", degree, message, "set it to 1 and raise encode.replicas")


@rule(
    id="eccpu-moves-nothing",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="ECCPUConnector moves embeddings between instances from vLLM 0.30 on.",
    why="Before, it only offloads inside one instance: consumers find nothing, without any error.",
    source="vLLM 0.29 and 0.30 ec_connector/cpu/connector.py",
    until=connectors.EC_CPU_NIXL_SINCE,
    needs_release=True,
)
def eccpu_moves_nothing(wiring: Wiring) -> Iterator[Broken]:
    """ECCPUConnector before 0.30."""
    choice = _uses(wiring, connectors.EC_CPU)
    if choice is not None:
        message = f"before vLLM 0.30 it moves nothing between instances, and {wiring.release} says no word about it"
        yield Broken(
            _CONNECTOR, choice.connector, message, "use ECExampleConnector with a volume, or vLLM 0.30 or later"
        )


@rule(
    id="eccpu-without-nixl",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="ECCPUConnector needs ec_enable_nixl to move embeddings between instances; the operator sets it.",
    why="Without it the memory region is private to one instance: no transfer, no metadata, no error.",
    source="vLLM 0.33 ec_connector/cpu/scheduler/__init__.py:91",
    since=connectors.EC_CPU_NIXL_SINCE,
)
def eccpu_without_nixl(wiring: Wiring) -> Iterator[Broken]:
    """The user switches NIXL off."""
    choice = _uses(wiring, connectors.EC_CPU)
    if choice is not None and choice.extra.get("ec_enable_nixl", True) is not True:
        message = "without NIXL each instance keeps its embeddings to itself, and vLLM says no word about it"
        value = choice.extra["ec_enable_nixl"]
        yield Broken(f"{_EXTRA}.ec_enable_nixl", value, message, "remove the key or use ECExampleConnector")


@rule(
    id="eccpu-data-parallel",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="An encoder with ECCPUConnector over NIXL has data parallelism 1.",
    why="Every rank binds the same side channel port in one pod: address in use.",
    source="vLLM 0.33 ec_connector/cpu/scheduler/__init__.py:167 (no offset by rank)",
    since=connectors.EC_CPU_NIXL_SINCE,
)
def eccpu_data_parallel(wiring: Wiring) -> Iterator[Broken]:
    """Data parallelism on the producing side."""
    instance = wiring.instances.get(Role.ENCODE)
    if instance is not None and instance.data > 1 and _uses(wiring, connectors.EC_CPU) is not None:
        message = "each rank binds the same side channel port, so the second one fails with address in use"
        yield Broken("spec.encode.parallelism.data", instance.data, message, "set it to 1 and raise encode.replicas")


@rule(
    id="ec-cpu-bytes-invalid",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="ec_cpu_bytes is a whole number of bytes above 0, and says the same as cacheSize.",
    why="vLLM refuses to start, or one of the two values would be ignored.",
    source="vLLM 0.33 ec_connector/cpu/common.py:81",
)
def ec_cpu_bytes_invalid(wiring: Wiring) -> Iterator[Broken]:
    """A value of another type, or two values."""
    choice = _uses(wiring, connectors.EC_CPU)
    if choice is None or "ec_cpu_bytes" not in choice.extra:
        return
    value, cache_size = choice.extra["ec_cpu_bytes"], cache_size_of(wiring)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        yield Broken(
            f"{_EXTRA}.ec_cpu_bytes", value, "must be a whole number of bytes above 0", "set cacheSize instead"
        )
    elif cache_size is not None and cache_size.bytes != value:
        message = f"cacheSize says {cache_size.bytes} bytes, and only one of the two can hold"
        yield Broken(f"{_EXTRA}.ec_cpu_bytes", value, message, "remove one of them")


@rule(
    id="ec-cpu-bytes-shared-memory",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="ec_cpu_bytes of every rank must fit into /dev/shm.",
    why="vLLM does not check it and touches all of it at start: OSError 14 (Bad address), and the file stays.",
    source="vLLM 0.33 ec_connector/cpu/ec_shared_region.py; the errno was seen",
)
def ec_cpu_bytes_shared_memory(wiring: Wiring) -> Iterator[Broken]:
    """SharedMemorySize as written is too small."""
    size = ec_cpu_bytes(wiring)
    for role, instance in wiring.instances.items():
        shared = instance.spec.shared_memory_size
        if size is None or shared is None or instance.ec_role is None or size * instance.data <= shared.bytes:
            continue
        message = f"ec_cpu_bytes takes {size * instance.data} bytes of /dev/shm at start (OSError 14, Bad address)"
        remedy = f"raise it above {-(-size * instance.data // MIB)}Mi, remove it, or lower cacheSize"
        yield Broken(f"spec.{role}.sharedMemorySize", str(shared), message, remedy)


@rule(
    id="ec-cpu-bytes-memory-limit",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="ec_cpu_bytes of every rank must be below the container's memory limit.",
    why="All of it is touched at start and counts into the limit: the kernel kills the container.",
    source="vLLM 0.33 ec_connector/cpu/ec_shared_region.py; Kubernetes: memory-backed emptyDir",
)
def ec_cpu_bytes_memory_limit(wiring: Wiring) -> Iterator[Broken]:
    """The memory limit as written is too small."""
    size = ec_cpu_bytes(wiring)
    for role, instance in wiring.instances.items():
        limit = memory_limit(instance)
        if size is None or limit is None or instance.ec_role is None or size * instance.data < limit.bytes:
            continue
        message = f"ec_cpu_bytes takes {size * instance.data} bytes at start and counts into the limit (OOM kill)"
        remedy = "raise the limit or lower transfer.embeddings.cacheSize"
        yield Broken(f"spec.{role}.resources.limits.memory", str(limit), message, remedy)


@rule(
    id="nixl-in-image",
    severity=Severity.WARNING,
    kind=Kind.ADVICE,
    what="ECCPUConnector, chosen by default, needs the nixl package in the image.",
    why="nixl is no dependency of vLLM; an image of one's own may lack it, and the engine then ends with an error.",
    source="vLLM 0.33 requirements/kv_connectors.txt",
    since=connectors.EC_CPU_NIXL_SINCE,
    needs_release=True,
)
def nixl_in_image(wiring: Wiring) -> Iterator[Broken]:
    """The default connector with an image that is not vLLM's own."""
    image = wiring.deployment.spec.engine.image
    choice = _uses(wiring, connectors.EC_CPU)
    if choice is None or not choice.chosen or image is None or wiring.release is None:
        return
    own = {(default_image(wiring.release, i.device_type) or "").partition(":")[0] for i in wiring.instances.values()}
    if image.partition("@")[0].rpartition(":")[0] not in own:
        message = "ECCPUConnector was chosen by default and needs the nixl package in the image"
        yield Broken("spec.engine.image", image, message, "check that it has nixl, or name a connector and volume")


RULES = (
    connector_unknown,
    mooncake_with_prefill,
    mooncake_producer_single_rank,
    eccpu_moves_nothing,
    eccpu_without_nixl,
    eccpu_data_parallel,
    ec_cpu_bytes_invalid,
    ec_cpu_bytes_shared_memory,
    ec_cpu_bytes_memory_limit,
    nixl_in_image,
)
