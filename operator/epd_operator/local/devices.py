"""Accelerators of this machine, shared out so that each instance has its own."""

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from epd_operator.api.device import DeviceType
from epd_operator.local.errors import LocalError

VISIBLE = {
    DeviceType.CUDA: "CUDA_VISIBLE_DEVICES",
    DeviceType.ROCM: "HIP_VISIBLE_DEVICES",
    DeviceType.XPU: "ZE_AFFINITY_MASK",
}
"""The variable that limits a process to some devices; it is also how a user keeps a run to some of them."""
_TIMEOUT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Demand:
    """What one instance takes."""

    instance: str
    type: DeviceType
    count: int


def share_out(demands: Iterable[Demand], environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """For each instance the variable that gives it its devices; no two get the same one.

    Raises LocalError where there are too few, naming who needs how many.
    """
    shares: dict[str, dict[str, str]] = {}
    by_type: dict[DeviceType, list[Demand]] = {}
    for demand in demands:
        if demand.count:
            by_type.setdefault(demand.type, []).append(demand)
    for device_type, group in by_type.items():
        found = iter(_enough(device_type, group, environ))
        for demand in group:
            taken = ",".join(next(found) for _ in range(demand.count))
            shares[demand.instance] = {VISIBLE[device_type]: taken}
    return shares


def _enough(device_type: DeviceType, group: list[Demand], environ: Mapping[str, str]) -> list[str]:
    devices, source = _devices(device_type, environ)
    needed = sum(demand.count for demand in group)
    if len(devices) < needed:
        wanted = ", ".join(f"{demand.instance} {demand.count}" for demand in group)
        raise LocalError(
            f"{needed} {device_type} devices are needed ({wanted}) and {len(devices)} found ({source}); lower replicas "
            "or parallelism, or use spec.device: {type: CPU} with a CPU build of vLLM"
        )
    return devices


def _devices(device_type: DeviceType, environ: Mapping[str, str]) -> tuple[list[str], str]:
    """The devices that may be used, and how that is known."""
    variable = VISIBLE[device_type]
    if variable in environ:
        return [name for name in environ[variable].split(",") if name.strip()], f"${variable}"
    if device_type is not DeviceType.CUDA:
        return [], f"set ${variable} to the devices that may be used: they are not looked for"
    program = shutil.which("nvidia-smi", path=environ.get("PATH"))
    if program is None:
        return [], f"no nvidia-smi on PATH; set ${variable} if there are devices all the same"
    command = [program, "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return [], f"nvidia-smi: {error}"
    if answer.returncode:
        said = (answer.stderr or answer.stdout).strip()
        return [], f"nvidia-smi: {said}"
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()], "nvidia-smi"
