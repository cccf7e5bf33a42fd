"""kubectl, for programs."""

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hack.cluster.command import ENVIRONMENT, require_success, run
from hack.cluster.errors import ClusterError

Object = dict[str, Any]
"""A Kubernetes object, as in JSON."""


class KubectlError(ClusterError):
    """kubectl failed; the message has its own words."""


@dataclass(frozen=True)
class Kubectl:
    """One kubectl and one cluster.

    >>> kubectl("get", "pods", "-n", "default").stdout
    >>> kubectl.json("get", "pod/a", "-n", "default")["status"]["phase"]
    """

    program: Sequence[str | Path]
    kubeconfig: Path
    cache: Path
    """Its directory for what it learned of the API; clusters come and go at one address, so each has its own."""
    context: str = ""
    environment: Mapping[str, str] = field(default_factory=lambda: ENVIRONMENT)

    def __call__(
        self, *args: str | Path, check: bool = True, stdin: str | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl; with `check` a failure raises.

        Raises KubectlError: it failed.
        Raises subprocess.TimeoutExpired: it took longer than `timeout` seconds.
        """
        done = run(*self.command(*args), check=False, stdin=stdin, timeout=timeout, environment=self.environment)
        if check:
            try:
                require_success(["kubectl", *map(str, args)], done)
            except ClusterError as error:
                raise KubectlError(str(error)) from None
        return done

    def json(self, *args: str) -> Object:
        """The answer of a `get`, parsed."""
        answer: Object = json.loads(self(*args, "--output=json").stdout)
        return answer

    def items(self, *args: str) -> list[Object]:
        """The objects of a `get` that lists."""
        found: list[Object] = self.json(*args)["items"]
        return found

    def apply(self, objects: Iterable[Object] | str, namespace: str = "", manager: str = "kubectl") -> None:
        """Server-side apply of objects, or of YAML documents, with conflicts forced.

        `namespace`: of the objects that name none; those of another one are refused. Raises KubectlError.
        """
        text = objects if isinstance(objects, str) else _list(objects)
        options = ["--server-side", "--force-conflicts", f"--field-manager={manager}", "--filename=-"]
        self("apply", *options, *([f"--namespace={namespace}"] if namespace else []), stdin=text)

    def exists(self, *args: str) -> bool:
        """Whether a `get` of these finds something."""
        return bool(self("get", "--ignore-not-found", "--output=name", *args).stdout.strip())

    def command(self, *args: str | Path) -> list[str]:
        """The command line that runs kubectl with these arguments in `environment`."""
        return [str(word) for word in (*self.program, *self._options(), *args)]

    def _options(self) -> list[str]:
        options = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}"]
        return [*options, f"--context={self.context}"] if self.context else options


def _list(objects: Iterable[Object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
