"""CPU and memory of a process, from /proc."""

import os
import re
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time since the process began."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def forget_peak(pid: int) -> None:
    """Let the peak of its memory count from now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_mib(pid: int) -> float:
    """Most resident memory, in MiB."""
    found = re.search(r"^VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    if found is None:
        raise ValueError(f"/proc/{pid}/status: no VmHWM; the process has ended")
    return int(found[1]) / 1024
