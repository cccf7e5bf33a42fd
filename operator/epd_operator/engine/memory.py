"""What of an instance lives in /dev/shm, and so how large it must be.

Sizes are bytes. Pages count into the container's memory limit once touched. Sources: vLLM 0.28 to 0.33,
distributed/device_communicators/shm_broadcast.py, multimodal/cache.py, ec_connector/cpu/, and measurements on 0.32.
"""

import math
from dataclasses import dataclass

from epd_operator.api.device import DeviceType
from epd_operator.api.quantity import Quantity
from epd_operator.api.role import TensorIPC
from epd_operator.engine import connectors
from epd_operator.engine.instance import Instance
from epd_operator.engine.wiring import Wiring

MIB = 1 << 20
GIB = 1 << 30
BASE = 64 * MIB
"""What the container runtime would give anyway: Python's own semaphores and small segments."""
MESSAGE_QUEUES = 256 * MIB
"""Between an engine and workers in processes of their own: ten chunks of 16 MiB are checked against the free space at
start. On CPUs even one worker is a process (0.28 to 0.33: platforms/cpu.py takes the executor `mp`)."""
COLLECTIVES_PER_DEVICE = 128 * MIB
"""NCCL's shared-memory transport between the devices of one pod."""
CPU_TENSORS = 2 * GIB
"""torch_shm with media preprocessed on the CPU: the sum of pixel values of the requests in flight. A full /dev/shm
is no failure there: vLLM logs a warning and serializes instead."""
DEVICE_TENSORS = 256 * MIB
"""torch_shm with media preprocessed on the accelerator: only the small tensors that stay on the CPU."""
TENSOR_ARENA = 2 * GIB
"""--enable-shm-tensor-arena with tensor parallelism: 8 x 256 MiB (from 0.32)."""


@dataclass(frozen=True, slots=True)
class SharedMemoryUse:
    """One user of /dev/shm."""

    what: str
    bytes: int


def ec_cpu_bytes(wiring: Wiring) -> int | None:
    """ec_cpu_bytes of an ECCPUConnector: extraConfig, else cacheSize, else 4 GiB; None for other connectors.

    Bytes for each data-parallel rank, touched at start.
    """
    if wiring.embeddings is None or wiring.embeddings.connector != connectors.EC_CPU:
        return None
    written = wiring.embeddings.extra.get("ec_cpu_bytes")
    if isinstance(written, int) and not isinstance(written, bool):
        return written
    cache_size = cache_size_of(wiring)
    return cache_size.bytes if cache_size is not None else connectors.EC_CPU_DEFAULT_BYTES


def cache_size_of(wiring: Wiring) -> Quantity | None:
    """transfer.embeddings.cacheSize as written."""
    transfer = wiring.deployment.spec.transfer
    return transfer.embeddings.cache_size if transfer and transfer.embeddings else None


def shared_memory_uses(wiring: Wiring, instance: Instance) -> tuple[SharedMemoryUse, ...]:
    """Everything that one instance keeps in /dev/shm."""
    uses = [SharedMemoryUse("small segments of Python and the runtime", BASE)]
    ranks = instance.tensor * instance.pipeline
    if ranks > 1 or instance.device_type is DeviceType.CPU:
        uses.append(SharedMemoryUse("message queues to the workers", MESSAGE_QUEUES))
    if instance.devices > 1:
        uses.append(SharedMemoryUse("collectives between the devices", COLLECTIVES_PER_DEVICE * instance.devices))
    if instance.tensor_ipc is TensorIPC.TORCH_SHM:
        on_cpu = instance.preprocessing_device == "cpu"
        what = "torch_shm, pixel values of requests in flight" if on_cpu else "torch_shm, tensors that stay on the CPU"
        uses.append(SharedMemoryUse(what, CPU_TENSORS if on_cpu else DEVICE_TENSORS))
    cpu_bytes = ec_cpu_bytes(wiring)
    if cpu_bytes is not None and instance.ec_role is not None:
        uses.append(SharedMemoryUse("ECCPUConnector, ec_cpu_bytes for each rank", cpu_bytes * instance.data))
    if instance.user_value("--mm-processor-cache-type") == "shm":
        uses.append(SharedMemoryUse("processor cache of type shm", processor_cache_bytes(instance)))
    if ranks > 1 and instance.user_value("--enable-shm-tensor-arena"):
        uses.append(SharedMemoryUse("shared tensor arena", TENSOR_ARENA))
    return tuple(uses)


def processor_cache_bytes(instance: Instance) -> int:
    """--mm-processor-cache-gb in bytes; 4 GiB unless set (vLLM 0.33 config/multimodal.py)."""
    gigabytes = instance.user_value("--mm-processor-cache-gb")
    if isinstance(gigabytes, int | float) and math.isfinite(gigabytes) and 0 <= gigabytes <= 1 << 20:
        return int(gigabytes * GIB)
    return 4 * GIB


def shared_memory_bytes(wiring: Wiring, instance: Instance) -> int:
    """Size of /dev/shm: sharedMemorySize as written, else the sum of its uses rounded up to 64 MiB."""
    if instance.spec.shared_memory_size is not None:
        return instance.spec.shared_memory_size.bytes
    return needed_shared_memory(wiring, instance)


def needed_shared_memory(wiring: Wiring, instance: Instance) -> int:
    """The sum of the uses of /dev/shm, rounded up to 64 MiB."""
    total = sum(use.bytes for use in shared_memory_uses(wiring, instance))
    return -(-total // (64 * MIB)) * 64 * MIB


def memory_limit(instance: Instance) -> Quantity | None:
    """The memory limit of the engine's container as written."""
    limits = instance.spec.resources.limits if instance.spec.resources else None
    return limits.get("memory") if limits else None
