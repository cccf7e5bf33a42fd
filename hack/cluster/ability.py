"""Whether the kernel lets this machine be a node: asked for each thing that pods need, not guessed from its kind."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hack.cluster.command import run
from hack.cluster.errors import ClusterError
from hack.cluster.settings import Settings

NETWORK = """
ip link add probe0 type bridge
ip link add probe1 type veth peer name probe2
ip link set probe1 master probe0
nft add table ip probe
nft add chain ip probe nat '{ type nat hook postrouting priority 100; }'
nft add rule ip probe nat ct state new masquerade
iptables -w -t nat -A POSTROUTING -s 192.0.2.0/24 -j RETURN
"""
OVERLAY = "mkdir lower upper work merged && mount -t overlay probe -o lowerdir=lower,upperdir=upper,workdir=work merged"
FOLDERS = ("bin", "sbin", "lib", "lib64")
"""Those that are links into /usr where /bin and /usr/bin are one."""
SECONDS = 60


def obstacle(directory: Path, free_bytes: int, memory_bytes: int) -> str:
    """What keeps this machine from being a node, in words; empty where nothing does.

    `directory` is where the node's files will be; `free_bytes` and `memory_bytes` what it must have left there and of
    its memory. The programs of a node must be there.
    """
    return next(_obstacles(directory, free_bytes, memory_bytes), "")


def _obstacles(directory: Path, free_bytes: int, memory_bytes: int) -> Iterator[str]:
    if os.geteuid():
        yield "a node needs root"
        return
    directory.mkdir(parents=True, exist_ok=True)
    if (free := shutil.disk_usage(directory).free) < free_bytes:
        yield f"{free / 1e9:.0f} GB are free below {directory}, and images need {free_bytes / 1e9:.0f}"
    if (available := _available_memory()) < memory_bytes:
        yield f"{available / 1e9:.1f} GB of memory are available, and engines need {memory_bytes / 1e9:.0f}"
    bridge = Settings().bridge
    if Path("/sys/class/net", bridge).exists() and not (directory / "sysctls.json").exists():
        yield f"another cluster's node is up on this machine (the bridge {bridge} is there)"
    with tempfile.TemporaryDirectory(dir=directory) as temporary:
        yield from _refused("overlay mounts", Path(temporary), "unshare", "--mount", "sh", "-ec", OVERLAY)
        yield from _refused("network namespaces", Path(temporary), "unshare", "--net", "sh", "-ec", NETWORK)
        bundle = _bundle(Path(temporary) / "bundle")
        root = Path(temporary) / "runc"
        command = ("runc", "--root", str(root), "run", "--bundle", str(bundle), f"epd-probe-{os.getpid()}")
        yield from _refused("containers with control groups", Path(temporary), *command)


def _refused(what: str, directory: Path, *command: str) -> Iterator[str]:
    """Words, if a command fails that uses a facility of the kernel and leaves nothing behind."""
    try:
        run("env", f"--chdir={directory}", *command, timeout=SECONDS)
    except (ClusterError, subprocess.TimeoutExpired) as error:
        yield f"the kernel does not let this machine have {what}: {error}"


def _bundle(directory: Path) -> Path:
    """A container of the machine's own programs that does nothing, with limits on memory, CPU and processes."""
    root = directory / "rootfs"
    for name in ("usr", "proc"):
        (root / name).mkdir(parents=True)
    mounts: list[dict[str, object]] = [{"destination": "/proc", "type": "proc", "source": "proc"}]
    bound = ["usr"]
    for name in FOLDERS:
        if Path("/", name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
        elif Path("/", name).is_dir():
            (root / name).mkdir()
            bound.append(name)
    mounts += [
        {"destination": f"/{name}", "type": "bind", "source": f"/{name}", "options": ["rbind", "ro"]} for name in bound
    ]
    limits = {"memory": {"limit": 64 << 20}, "cpu": {"quota": 50000, "period": 100000}, "pids": {"limit": 10}}
    configuration = {
        "ociVersion": "1.0.2",
        "process": {"user": {"uid": 1000, "gid": 1000}, "args": ["/bin/true"], "cwd": "/", "noNewPrivileges": True},
        "root": {"path": "rootfs", "readonly": True},
        "mounts": mounts,
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")],
            "cgroupsPath": f"/epd-probe-{os.getpid()}",
            "resources": limits,
        },
    }
    (directory / "config.json").write_text(json.dumps(configuration))
    return directory


def _available_memory() -> int:
    """Bytes that new programs can have without swapping."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
