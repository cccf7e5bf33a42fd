"""What vLLM does before it answers, and the words in which it gives up. Messages are those of 0.32 and 0.33."""

import secrets
import time
from pathlib import Path

from tests.simulator.vllm.options import Options

MIB = 1 << 20


class StartError(Exception):
    """The instance does not start; the message is what vLLM's last line says."""


def check(options: Options, shared_memory: Path = Path("/dev/shm")) -> None:
    """Refuse what vLLM refuses, as far as deployments can get it wrong. Raises StartError."""
    model = Path(options.model)
    if model.is_absolute() and not (model / "config.json").exists():
        raise StartError(f"OSError: Can't load the configuration of '{options.model}': no config.json in it")
    if options.tensor_ipc == "torch_shm":
        if options.ranks > 1:
            raise StartError("ValueError: torch_shm is not supported with data_parallel_size > 1 or several ranks")
        if options.environ.get("VLLM_WORKER_MULTIPROC_METHOD") != "spawn":
            raise StartError("ValueError: torch_shm needs VLLM_WORKER_MULTIPROC_METHOD=spawn")
    _directory(options, "ec", "ECExampleConnector")
    _directory(options, "kv", "ExampleConnector")
    if size := int(options.extra("ec").get("ec_cpu_bytes", 0)):
        _region(shared_memory / f"vllm_ec_{secrets.token_hex(8)}_dp0.mmap", size)
    if options.environ.get("EPD_SIM_START", "").startswith("crash"):
        raise StartError(options.environ["EPD_SIM_START"].partition(":")[2] or "RuntimeError: simulated")
    if megabytes := options.environ.get("EPD_SIM_MEMORY_MB"):
        _touch(int(megabytes) * MIB)
    time.sleep(float(options.environ.get("EPD_SIM_START_SECONDS", "1")))


def _directory(options: Options, kind: str, connector: str) -> None:
    if options.connector(kind) != connector:
        return
    path = Path(str(options.extra(kind).get("shared_storage_path", "/tmp")))
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".probe-{options.port}"
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise StartError(f"OSError: {error}") from None


def _region(path: Path, size: int) -> None:
    """Populate a shared-memory region, as ECCPUConnector does at start."""
    try:
        with path.open("wb") as file:
            for _ in range(max(1, size // MIB)):
                file.write(bytes(MIB))
    except OSError:
        raise StartError("OSError: [Errno 14] Bad address") from None
    path.unlink()


def _touch(size: int) -> None:
    held = bytearray(size)
    held[::4096] = b"\1" * len(range(0, size, 4096))
    time.sleep(60)
