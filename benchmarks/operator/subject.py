"""An operator that is measured, as a process outside the cluster with an identity of its own."""

import json
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hack.cluster.command import ENVIRONMENT
from hack.cluster.kubectl import Kubectl, Object

HOME = "bench-system"
START_SECONDS = 120.0
STOP_SECONDS = 60.0


class Subject(ABC):
    """One operator and its custom resource."""

    name: str
    collection: str
    """Path of the custom resources' kind below a namespace, as in `/apis/example.org/v1/namespaces/{}/things`."""
    children: str
    """The same of the children by which a change is seen to arrive."""
    condition: str
    """Is true of an object that is as it shall be."""
    ready: str
    """In the log of an operator that has begun its work."""

    def __init__(self, kubectl: Kubectl, directory: Path) -> None:
        self.kubectl = kubectl
        self.directory = directory / self.name
        self.directory.mkdir()
        self._log = self.directory / "operator.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def user(self) -> str:
        """Its name in the audit log."""
        return f"system:serviceaccount:{HOME}:{self.name}"

    @property
    def kubeconfig(self) -> Path:
        """Of its ServiceAccount."""
        return self.directory / "kubeconfig"

    @property
    def pid(self) -> int:
        """Of the running process."""
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"{self.name} does not run; the end of its log:\n{self._log.read_text()[-2000:]}")
        return self._process.pid

    @abstractmethod
    def body(self, name: str, replicas: int) -> Object:
        """One object with three roles, of so many instances each."""

    @abstractmethod
    def change(self, value: str) -> tuple[Any, str]:
        """A patch of one role's template and its content type."""

    @abstractmethod
    def command(self) -> Sequence[str | Path]:
        """What starts it."""

    def install(self) -> None:
        """Give it an identity that may do everything: rights are not what is measured."""
        account = {"namespace": HOME, "name": self.name}
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"bench-{self.name}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", **account}],
        }
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}
        self.kubectl.apply([namespace, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, binding])
        token = self.kubectl("create", "token", self.name, f"--namespace={HOME}", "--duration=24h").stdout.strip()
        config = json.loads(self.kubectl.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        config["contexts"][0]["context"]["namespace"] = HOME
        self.kubeconfig.write_text(json.dumps(config))

    def start(self) -> None:
        """Start it, and wait until it works. Raises RuntimeError."""
        begun = self._said()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(word) for word in self.command()], stdout=log, stderr=log, env=ENVIRONMENT, cwd=self.directory
            )
        deadline = time.monotonic() + START_SECONDS
        while self._said() == begun:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} does not begin; its log is {self._log}")
            _ = self.pid
            time.sleep(0.1)

    def stop(self) -> None:
        """SIGTERM, and wait."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(STOP_SECONDS)

    def _said(self) -> int:
        return self._log.read_text().count(self.ready) if self._log.exists() else 0
