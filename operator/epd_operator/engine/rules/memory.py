"""Rules about shared memory and memory limits."""

from collections.abc import Iterator

from epd_operator.api.finding import Severity
from epd_operator.engine.memory import MIB, ec_cpu_bytes, memory_limit, needed_shared_memory, shared_memory_bytes
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring


@rule(
    id="shared-memory-above-limit",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="/dev/shm is smaller than the container's memory limit.",
    why="Its pages count into the limit: the kernel kills the container before /dev/shm is full.",
    source="Kubernetes: memory-backed emptyDir volumes count into the container's memory limit",
)
def shared_memory_above_limit(wiring: Wiring) -> Iterator[Broken]:
    """/dev/shm as written or computed does not fit; what ec_cpu_bytes alone breaks is told by its own rule."""
    for role, instance in wiring.instances.items():
        limit = memory_limit(instance)
        if limit is None or shared_memory_bytes(wiring, instance) < limit.bytes:
            continue
        if instance.ec_role is not None and (ec_cpu_bytes(wiring) or 0) * instance.data >= limit.bytes:
            continue
        size = shared_memory_bytes(wiring, instance) // MIB
        message = f"/dev/shm may take {size}Mi of it, so the kernel would kill the container before /dev/shm is full"
        remedy = "raise the limit or set sharedMemorySize below it"
        yield Broken(f"spec.{role}.resources.limits.memory", str(limit), message, remedy)


@rule(
    id="shared-memory-too-small",
    severity=Severity.WARNING,
    kind=Kind.SILENT,
    what="sharedMemorySize holds what the instance keeps in /dev/shm.",
    why="Depending on what does not fit: an error at start, SIGBUS under load, or a slower path with a log line.",
    source="vLLM 0.32 and 0.33, shm_broadcast.py, multimodal/cache.py; measured on 0.32",
    proved=True,
)
def shared_memory_too_small(wiring: Wiring) -> Iterator[Broken]:
    """SharedMemorySize as written is below the computed need."""
    for role, instance in wiring.instances.items():
        written = instance.spec.shared_memory_size
        needed = needed_shared_memory(wiring, instance)
        too_small_for_region = instance.ec_role is not None and (ec_cpu_bytes(wiring) or 0) * instance.data > (
            written.bytes if written else needed
        )
        if written is None or written.bytes >= needed or too_small_for_region:
            continue
        message = f"what this role keeps in /dev/shm may take {needed // MIB}Mi"
        remedy = "remove it to have it computed (`epd explain` shows of what), or raise it"
        yield Broken(f"spec.{role}.sharedMemorySize", str(written), message, remedy)


RULES = (shared_memory_above_limit, shared_memory_too_small)
