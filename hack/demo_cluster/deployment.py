"""An EPDDeployment in a cluster, from the outside."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from epd_operator.api.names import ANNOTATION_RENDER
from hack.cluster.errors import ClusterError
from hack.cluster.kubectl import Kubectl, Object
from hack.demo_cluster.forward import forwarded


@dataclass(frozen=True)
class Deployed:
    """One EPDDeployment by its name."""

    kubectl: Kubectl
    namespace: str
    name: str

    def apply(self, body: Object) -> None:
        """Apply it. Raises ClusterError: it is refused."""
        self.kubectl.apply([body], self.namespace)

    def patch(self, spec: Object) -> None:
        """Merge into its spec. Raises ClusterError: it is refused."""
        self.kubectl("patch", *self._it(), "--type=merge", f"--patch={json.dumps({'spec': spec})}")

    def get(self) -> Object:
        """Read it."""
        return self.kubectl.json("get", *self._it())

    def condition(self, kind: str) -> Object:
        """One condition of its status; empty where it is not there, or speaks of an older spec."""
        body = self.get()
        found: list[Object] = body.get("status", {}).get("conditions", [])
        generation = body["metadata"]["generation"]
        return next((one for one in found if one["type"] == kind and one["observedGeneration"] == generation), {})

    def row(self) -> str:
        """What `kubectl get` prints."""
        return self.kubectl("get", *self._it()).stdout.rstrip()

    def wait_ready(self, seconds: int) -> None:
        """Wait until it is ready. Raises ClusterError, with its status and the logs of its pods: it stays unready."""
        command = ("wait", "--for=condition=Ready", *self._it(), f"--timeout={seconds}s")
        try:
            self.kubectl(*command, timeout=seconds + 30)
        except (ClusterError, subprocess.TimeoutExpired) as error:
            raise ClusterError(f"{self.name} is not ready after {seconds} s: {error}\n{self.diagnosis()}") from None

    def diagnosis(self) -> str:
        """Its status, its pods and the last lines of their logs."""
        where = f"--namespace={self.namespace}"
        status = json.dumps(self.get().get("status", {}).get("conditions", []), indent=1)
        pods = self.kubectl("get", "pods", where, "-o", "wide", check=False).stdout
        labels = f"--selector=app.kubernetes.io/instance={self.name}"
        logs = self.kubectl("logs", where, labels, "--tail=25", "--prefix", "--all-containers", check=False).stdout
        return f"{status}\n{pods}\n{logs}"

    def pods(self, component: str) -> list[Object]:
        """Its pods of a role, or of the proxy."""
        labels = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={component}"
        return self.kubectl.items("get", "pods", f"--namespace={self.namespace}", f"--selector={labels}")

    @contextmanager
    def reached(self) -> Iterator[str]:
        """A URL of its proxy, while the context lasts. Raises ClusterError."""
        with forwarded(self.kubectl, self.namespace, f"service/{self.name}-proxy") as url:
            yield url

    def delete(self, *options: str) -> None:
        """Delete it and wait until what it owns is gone."""
        self.kubectl("delete", *self._it(), "--ignore-not-found", "--cascade=foreground", *options)

    def _it(self) -> tuple[str, str]:
        return f"epddeployment/{self.name}", f"--namespace={self.namespace}"


def example(content: Object, image: str, *, operator: str, **changes: Any) -> Object:
    """An example's object, served by another image.

    `operator`: the operator's image. A deployment that was there before is rendered anew by each other one, which an
    operator does not do by itself.
    """
    spec = {**content["spec"], **changes}
    spec["engine"] = {**spec["engine"], "image": image, "imagePullPolicy": "IfNotPresent"}
    metadata = {**content["metadata"], "annotations": {ANNOTATION_RENDER: operator}}
    return {**content, "metadata": metadata, "spec": spec}
