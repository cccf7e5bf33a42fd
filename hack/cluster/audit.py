"""Counting requests to the API server, by its audit log."""

import json
import os
import time
import uuid
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hack.cluster.errors import ClusterError
from hack.cluster.kubectl import Kubectl

LONGEST_LINE = 1 << 20
"""Bytes; a line of the log, which has no bodies, is below 10 kB."""
WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@dataclass(frozen=True)
class Request:
    """One finished request; a watch counts when it starts."""

    verb: str
    """As in RBAC: get, list, watch, create, update, patch, delete, deletecollection."""
    resource: str
    """`pods`, or `pods/status` for a subresource."""
    group: str
    namespace: str
    name: str
    code: int
    user_agent: str
    user: str


@dataclass
class AuditLog:
    """The requests of a running API server from one moment on.

    Ask `requests()` as often as needed: it waits until whatever ended before the call is in the log.
    """

    path: Path
    kubectl: Kubectl
    _offset: int = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget what was before. A line that is being written is not before."""
        self._offset = 0
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - LONGEST_LINE)
            file.seek(start)
            self._offset = start + file.read().rfind(b"\n") + 1

    def requests(
        self,
        *,
        user_agent: str = "",
        verbs: Collection[str] | None = None,
        resource: str | None = None,
        namespace: str | None = None,
    ) -> list[Request]:
        """The requests whose user agent starts with `user_agent` and whose other facts are the given ones.

        Raises ClusterError: the log does not follow the API server.
        """
        self._catch_up()
        return [
            request
            for request in self._read()
            if request.user_agent.startswith(user_agent)
            and (verbs is None or request.verb in verbs)
            and resource in (None, request.resource)
            and namespace in (None, request.namespace)
        ]

    def _catch_up(self, timeout: float = 30) -> None:
        """Make a request that can be told from all others, and wait for it to appear."""
        mark = f"audit-{uuid.uuid4().hex}"
        self.kubectl("get", "configmap", mark, "--ignore-not-found")
        deadline = time.monotonic() + timeout
        while not any(request.name == mark for request in self._read()):
            if time.monotonic() > deadline:
                raise ClusterError(f"{self.path}: a request made {timeout:g} s ago is not in the audit log")
            time.sleep(0.02)

    def _read(self) -> Iterator[Request]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._offset)
            lines = file.read().split(b"\n")
        seen: set[str] = set()
        for line in lines[:-1]:  # after the last newline: nothing, or the start of a line
            event = json.loads(line)
            if event["auditID"] not in seen:  # a watch is logged when it starts and when it ends
                seen.add(event["auditID"])
                yield _request(event)


def _request(event: dict[str, object]) -> Request:
    reference, status, user = (_mapping(event.get(key)) for key in ("objectRef", "responseStatus", "user"))
    subresource = reference.get("subresource")
    return Request(
        verb=str(event["verb"]),
        resource=f"{reference.get('resource', '')}{f'/{subresource}' if subresource else ''}",
        group=str(reference.get("apiGroup", "")),
        namespace=str(reference.get("namespace", "")),
        name=str(reference.get("name", "")),
        code=int(str(status.get("code", 0))),
        user_agent=str(event.get("userAgent", "")),
        user=str(user.get("username", "")),
    )


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
