"""What is in /dev/shm, and its size."""

import pytest

from epd_operator.api.role import Role
from epd_operator.engine.memory import (
    MIB,
    ec_cpu_bytes,
    memory_limit,
    needed_shared_memory,
    shared_memory_bytes,
    shared_memory_uses,
)
from tests.unit.objects import wiring

GIB = 1024
FILES = "transfer: {embeddings: {volume: {persistentVolumeClaim: {claimName: a}}}}"


@pytest.mark.parametrize(
    ("spec", "role", "mebibytes"),
    [
        ("encode: <absent>", Role.DECODE, 64),
        (FILES, Role.DECODE, 64),
        ("{encode: <absent>, device: {type: CPU}}", Role.DECODE, 64 + 256),
        (FILES, Role.ENCODE, 64 + 256),
        (f"{{encode: {{preprocessing: {{device: CPU}}}}, {FILES}}}", Role.ENCODE, 64 + 2 * GIB),
        (f"{{encode: {{preprocessing: {{tensorIPC: direct_rpc}}}}, {FILES}}}", Role.ENCODE, 64),
        ("", Role.ENCODE, 64 + 256 + 4 * GIB),
        ("", Role.DECODE, 64 + 4 * GIB),
        ("prefill: {}", Role.DECODE, 64),
        ("decode: {parallelism: {data: 2}}", Role.DECODE, 64 + 2 * 128 + 2 * 4 * GIB),
        ("{encode: <absent>, decode: {parallelism: {tensor: 4}}}", Role.DECODE, 64 + 256 + 4 * 128),
        ("{encode: <absent>, decode: {parallelism: {pipeline: 2}}}", Role.DECODE, 64 + 256 + 2 * 128),
        ("{encode: <absent>, decode: {args: [--mm-processor-cache-type=shm]}}", Role.DECODE, 64 + 4 * GIB),
        (
            "{encode: <absent>, decode: {args: [--mm-processor-cache-type, shm, --mm-processor-cache-gb, '2']}}",
            Role.DECODE,
            64 + 2 * GIB,
        ),
        ("{encode: <absent>, decode: {args: [--mm-processor-cache-type=lru]}}", Role.DECODE, 64),
        (
            "{encode: <absent>, decode: {parallelism: {tensor: 2}, args: [--enable-shm-tensor-arena]}}",
            Role.DECODE,
            64 + 256 + 2 * 128 + 2 * GIB,
        ),
        ("{encode: <absent>, decode: {args: [--enable-shm-tensor-arena]}}", Role.DECODE, 64),
    ],
)
def test_needed(spec: str, role: Role, mebibytes: int) -> None:
    wired = wiring(spec)
    assert needed_shared_memory(wired, wired.instances[role]) == mebibytes * MIB
    assert shared_memory_bytes(wired, wired.instances[role]) == mebibytes * MIB


def test_every_use_has_a_name() -> None:
    wired = wiring("")
    assert [
        (use.what.split(",")[0], use.bytes // MIB) for use in shared_memory_uses(wired, wired.instances[Role.ENCODE])
    ] == [
        ("small segments of Python and the runtime", 64),
        ("torch_shm", 256),
        ("ECCPUConnector", 4 * GIB),
    ]


def test_a_written_size_holds() -> None:
    wired = wiring("decode: {sharedMemorySize: 10Mi}")
    assert shared_memory_bytes(wired, wired.instances[Role.DECODE]) == 10 * MIB


def test_odd_sizes_are_rounded_up() -> None:
    wired = wiring("transfer: {embeddings: {cacheSize: 1}}")
    assert needed_shared_memory(wired, wired.instances[Role.DECODE]) == 128 * MIB


@pytest.mark.parametrize(
    ("spec", "size"),
    [
        ("", 4 << 30),
        ("transfer: {embeddings: {cacheSize: 1.5Gi}}", 3 << 29),
        ("transfer: {embeddings: {extraConfig: {ec_cpu_bytes: 7}}}", 7),
        ("transfer: {embeddings: {extraConfig: {ec_cpu_bytes: true}}}", 4 << 30),
        ("transfer: {embeddings: {connector: ECMooncakeConnector}}", None),
        (FILES, None),
        ("encode: <absent>", None),
    ],
)
def test_ec_cpu_bytes(spec: str, size: int | None) -> None:
    assert ec_cpu_bytes(wiring(spec)) == size


def test_memory_limit() -> None:
    wired = wiring("decode: {resources: {limits: {memory: 1Gi}}}")
    limit = memory_limit(wired.instances[Role.DECODE])
    assert limit is not None
    assert limit.bytes == 1 << 30
    assert memory_limit(wired.instances[Role.ENCODE]) is None
