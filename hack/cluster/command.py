"""Running other programs to their end."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.cluster.errors import ClusterError

# Nothing of the user's environment reaches a component: no HTTP proxy, no KUBECONFIG. runc, nft and ip are in sbin.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": os.environ.get("HOME", "/"),
    "LANG": "C.UTF-8",
}


def run(
    *argv: str | Path,
    check: bool = True,
    stdin: str | None = None,
    timeout: float | None = None,
    environment: Mapping[str, str] = ENVIRONMENT,
) -> subprocess.CompletedProcess[str]:
    """Run a program with captured output, by default in a clean environment.

    Raises ClusterError: with `check`, the program failed; the message has what it printed.
    Raises subprocess.TimeoutExpired: it took longer than `timeout` seconds.
    """
    command = [str(word) for word in argv]
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, env=environment, check=False, timeout=timeout
    )
    if check:
        require_success(command, done)
    return done


def require_success(command: Sequence[str], done: subprocess.CompletedProcess[str]) -> None:
    """Raise a ClusterError with the program's own words unless it exited with 0."""
    if done.returncode:
        raise ClusterError(f"{' '.join(command)}: exit {done.returncode}\n{(done.stdout + done.stderr).strip()}")
