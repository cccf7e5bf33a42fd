"""Rules about ECCPUConnector: embeddings in host memory, pulled over NIXL."""

from collections.abc import Iterator
from typing import Any

from epd_operator.api.device import DeviceType
from epd_operator.api.finding import Severity
from epd_operator.api.quantity import Quantity
from epd_operator.api.role import Role
from epd_operator.engine import connectors
from epd_operator.engine.memory import cache_size_of, ec_cpu_bytes, memory_limit, needed_shared_memory
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

_CONNECTOR = "spec.transfer.embeddings.connector"
_EXTRA = "spec.transfer.embeddings.extraConfig"
_CACHE_SIZE = "spec.transfer.embeddings.cacheSize"


@rule(
    id="eccpu-moves-nothing",
    severity=Severity.ERROR,
    kind=Kind.SILENT,
    what="ECCPUConnector moves embeddings between instances from vLLM 0.30 on.",
    why="Before, it only offloads inside one instance: consumers find nothing, without any error.",
    source="vLLM 0.29 and 0.30 ec_connector/cpu/connector.py",
    until=connectors.EC_CPU_NIXL_SINCE,
    needs_release=True,
    proved=True,
)
def eccpu_moves_nothing(wiring: Wiring) -> Iterator[Broken]:
    """ECCPUConnector before 0.30."""
    choice = wiring.embeddings_by(connectors.EC_CPU)
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
    proved=True,
)
def eccpu_without_nixl(wiring: Wiring) -> Iterator[Broken]:
    """The user switches NIXL off."""
    choice = wiring.embeddings_by(connectors.EC_CPU)
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
    unproved="the port is bound by running engines on devices, with nixl",
    since=connectors.EC_CPU_NIXL_SINCE,
)
def eccpu_data_parallel(wiring: Wiring) -> Iterator[Broken]:
    """Data parallelism on the producing side."""
    instance = wiring.instances.get(Role.ENCODE)
    if instance is not None and instance.data > 1 and wiring.embeddings_by(connectors.EC_CPU) is not None:
        message = "each rank binds the same side channel port, so the second one fails with address in use"
        yield Broken("spec.encode.parallelism.data", instance.data, message, "set it to 1 and raise encode.replicas")


@rule(
    id="ec-cpu-bytes-invalid",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="ec_cpu_bytes is a number of bytes, and not 0.",
    why="vLLM refuses to start.",
    source="vLLM 0.28 to 0.33 ec_connector/cpu/common.py, create_ec_shared_region",
    proved=True,
)
def ec_cpu_bytes_invalid(wiring: Wiring) -> Iterator[Broken]:
    """Nothing, or something that is no number."""
    choice, cache_size = wiring.embeddings_by(connectors.EC_CPU), cache_size_of(wiring)
    if choice is None:
        return
    if "ec_cpu_bytes" in choice.extra and _refused_size(choice.extra["ec_cpu_bytes"]):
        message = "is no number of bytes above 0 (vLLM refuses to start)"
        value = choice.extra["ec_cpu_bytes"]
        yield Broken(f"{_EXTRA}.ec_cpu_bytes", value, message, "remove it and set transfer.embeddings.cacheSize")
    elif "ec_cpu_bytes" not in choice.extra and cache_size is not None and cache_size.bytes < 1:
        yield Broken(_CACHE_SIZE, str(cache_size), "vLLM refuses a cache of 0 bytes", "write 4Gi, or remove it")


def _refused_size(value: Any) -> bool:
    """Whether vLLM refuses it as a size: false, or nothing that Python's int() takes."""
    try:
        return not value or int(value) == 0
    except (TypeError, ValueError, OverflowError):
        return True


@rule(
    id="ec-cpu-bytes-unclear",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="ec_cpu_bytes is written as a whole number above 0, and says the same as cacheSize.",
    why="Shared memory is computed from it, vLLM takes true for 1 byte, and of two sizes one would be ignored.",
    source="vLLM 0.33 ec_connector/cpu/common.py, create_ec_shared_region",
)
def ec_cpu_bytes_unclear(wiring: Wiring) -> Iterator[Broken]:
    """A number in another form, or two sizes."""
    choice, cache_size = wiring.embeddings_by(connectors.EC_CPU), cache_size_of(wiring)
    value = choice.extra.get("ec_cpu_bytes") if choice is not None else None
    if value is None or _refused_size(value):
        return
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        message = "is not written as a whole number of bytes above 0, from which /dev/shm is computed"
        yield Broken(f"{_EXTRA}.ec_cpu_bytes", value, message, "remove it and set transfer.embeddings.cacheSize")
    elif cache_size is not None and cache_size.bytes != value:
        message = f"cacheSize says {cache_size.bytes} bytes, and only one of the two can hold"
        yield Broken(f"{_EXTRA}.ec_cpu_bytes", value, message, "remove it, or remove cacheSize")


@rule(
    id="ec-cpu-bytes-shared-memory",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="ec_cpu_bytes of every rank must fit into /dev/shm.",
    why="vLLM does not check it and touches all of it at start: OSError 14 (Bad address), and the file stays.",
    source="vLLM 0.33 ec_connector/cpu/ec_shared_region.py; the errno was seen",
    unproved="the memory is touched by a running engine, in a /dev/shm of that size",
)
def ec_cpu_bytes_shared_memory(wiring: Wiring) -> Iterator[Broken]:
    """SharedMemorySize as written is too small."""
    broken = []
    for role, instance in wiring.instances.items():
        shared, region = instance.spec.shared_memory_size, _region(wiring, role)
        if shared is None or region <= shared.bytes:
            continue
        message = f"ec_cpu_bytes takes {_size(region)} of /dev/shm at start (vLLM ends with OSError 14, Bad address)"
        needed = _size(needed_shared_memory(wiring, instance))
        remedy = f"remove it to have it computed, raise it to {needed}, or lower {_written_as(wiring)}"
        broken.append(Broken(f"spec.{role}.sharedMemorySize", str(shared), message, remedy))
    yield from _at_its_cause(wiring, broken, "the /dev/shm of every role that holds it")


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
    broken = []
    for role, instance in wiring.instances.items():
        limit, region = memory_limit(instance), _region(wiring, role)
        if limit is None or region == 0 or region < limit.bytes:
            continue
        message = f"ec_cpu_bytes takes {_size(region)} at start and counts into the limit (OOM kill)"
        remedy = f"raise the limit above {_size(region)}, or lower {_written_as(wiring)}"
        broken.append(Broken(f"spec.{role}.resources.limits.memory", str(limit), message, remedy))
    yield from _at_its_cause(wiring, broken, "the memory limit of every role that holds it")


def _region(wiring: Wiring, role: Role) -> int:
    """Bytes that ECCPUConnector touches in one instance of a role; 0 where it takes no part."""
    instance = wiring.instances[role]
    return (ec_cpu_bytes(wiring) or 0) * instance.data if instance.ec_role is not None else 0


def _at_its_cause(wiring: Wiring, broken: list[Broken], beside: str) -> Iterator[Broken]:
    """The place as it is; where one size breaks several, that size, also if it is the default."""
    if len(broken) < 2:
        yield from broken
        return
    path, size = _written_at(wiring), _size(ec_cpu_bytes(wiring) or 0)
    numbers = " and ".join(str(place.value) for place in broken)
    if path is None:
        message = f"{size}, the default, does not fit into {beside} ({numbers})"
        yield Broken(_CACHE_SIZE, None, message, "set it lower, or raise those")
        return
    value = ec_cpu_bytes(wiring) if path.startswith(_EXTRA) else str(cache_size_of(wiring))
    yield Broken(path, value, f"does not fit into {beside} ({numbers})", "lower it, or raise those")


def _written_at(wiring: Wiring) -> str | None:
    """Where the user wrote the size; None for the default."""
    if wiring.embeddings is not None and "ec_cpu_bytes" in wiring.embeddings.extra:
        return f"{_EXTRA}.ec_cpu_bytes"
    return _CACHE_SIZE if cache_size_of(wiring) is not None else None


def _written_as(wiring: Wiring) -> str:
    path = _written_at(wiring)
    return path.removeprefix("spec.") if path else "transfer.embeddings.cacheSize (default 4Gi)"


def _size(count: int) -> str:
    return str(Quantity.of_bytes(count))


@rule(
    id="eccpu-on-cpu",
    severity=Severity.ERROR,
    kind=Kind.REFUSED,
    what="ECCPUConnector is not used by instances on CPU.",
    why="It needs the V2 model runner, which needs Triton and so an accelerator: vLLM refuses to start.",
    source="vLLM 0.30 to 0.32 config/vllm.py, _validate_v2_model_runner; asked",
    since=connectors.EC_CPU_NIXL_SINCE,
    until=connectors.V2_ON_CPU_SINCE,
    needs_release=True,
    proved=True,
)
def eccpu_on_cpu(wiring: Wiring) -> Iterator[Broken]:
    """An encoder or consumer on CPU."""
    choice = wiring.embeddings_by(connectors.EC_CPU)
    for role, instance in wiring.instances.items() if choice is not None else ():
        if choice is not None and instance.ec_role is not None and instance.device_type is DeviceType.CPU:
            message = f"it needs the V2 model runner, which {role} on CPU does not have (vLLM refuses to start)"
            yield Broken(f"{choice.path}.connector", choice.connector, message, "use ECExampleConnector with a volume")
            return


RULES = (
    eccpu_on_cpu,
    eccpu_moves_nothing,
    eccpu_without_nixl,
    eccpu_data_parallel,
    ec_cpu_bytes_invalid,
    ec_cpu_bytes_unclear,
    ec_cpu_bytes_shared_memory,
    ec_cpu_bytes_memory_limit,
)
