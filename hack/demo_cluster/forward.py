"""A way from this machine to a Service or pod of the cluster."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from hack.cluster.errors import ClusterError
from hack.cluster.kubectl import Kubectl


@contextmanager
def forwarded(kubectl: Kubectl, namespace: str, target: str, port: int = 8000) -> Iterator[str]:
    """A base URL on loopback that leads to a port of `service/NAME` or `pod/NAME`, while the context lasts.

    A Service is resolved once: to one of its pods. Raises ClusterError: there is no such thing, or it does not run.
    """
    command = kubectl.command("port-forward", f"--namespace={namespace}", target, f":{port}")
    process = subprocess.Popen(
        command, env=dict(kubectl.environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stderr is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())
        if not found:
            raise ClusterError(f"no way to {target} in namespace {namespace}: {process.stderr.read().strip()}")
        yield f"http://127.0.0.1:{found[1]}"
    finally:
        process.kill()
        process.communicate()
