"""A deployment of simulated engines under load, and the means to break it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hack.cluster.errors import ClusterError
from hack.cluster.kubectl import Object
from hack.cluster.local import LocalCluster, kept_cluster
from hack.cluster.provider import Local
from hack.demo_cluster.deployment import Deployed
from hack.demo_cluster.installation import SYSTEM_NAMESPACE, Installation
from tests.e2e.faults.load import Load
from tests.e2e.simulated import CLAIM, simulated
from tests.integration.eventually import eventually

NAME = "faults"
READY_SECONDS = 300
AFTER = 100
"""Requests that are answered before a fault, and after it has passed."""
SPEED = {"EPD_SIM_ENCODE_MS": "50", "EPD_SIM_PREFILL_MS": "50", "EPD_SIM_TOKEN_MS": "150"}


def environment(release: str, **more: str) -> list[Object]:
    """Variables of all engines."""
    return [{"name": name, "value": value} for name, value in {"EPD_SIM_RELEASE": release, **SPEED, **more}.items()]


def deployment(image: str, release: str = "0.32.0") -> Object:
    """E+P+D with two instances of everything."""
    role = {"replicas": 2, "drainTimeoutSeconds": 20, "startupTimeoutSeconds": 60}
    shared = {"volume": {"persistentVolumeClaim": {"claimName": CLAIM}}}
    body = simulated(
        NAME, image, release, encode=role, prefill=role, decode=role,
        transfer={"embeddings": shared, "kv": {"connector": "NixlConnector"}},
        rollout={"progressDeadlineSeconds": 90},
    )  # fmt: skip
    body["spec"]["engine"]["env"] = environment(release)
    body["spec"]["proxy"]["replicas"] = 2
    return body


@dataclass
class Scene:
    """What is acted on."""

    installed: Installation
    deployed: Deployed
    provider: Local
    load: Load
    strike: tuple[float, float] = field(default=(0.0, 0.0))
    """When a kill began and was done, in seconds of the monotonic clock."""

    def kill(self, namespace: str, component: str) -> None:
        """Kill the first pod's process, as a crash would, with no warning to anyone; and wait until it was replaced."""
        pods = self.installed.kubectl.items(
            "get", "pods", f"--namespace={namespace}", f"--selector=app.kubernetes.io/component={component}"
        )
        running = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        name, container = running[0]["metadata"]["name"], _container(running[0])
        with self.cluster() as cluster:
            begun = time.monotonic()
            cluster.node.containerd.ctr("tasks", "kill", "--signal", "SIGKILL", container)
            self.strike = begun, time.monotonic()
        pod = ("get", f"pod/{name}", f"--namespace={namespace}")
        eventually(
            "the container is replaced", lambda: _replaced(self.installed.kubectl.json(*pod), container), seconds=60
        )

    def evict(self, component: str) -> tuple[bool, bool]:
        """Evict two pods of a component, one right after the other; returns whether each was evicted."""
        first, second = (pod["metadata"]["name"] for pod in self.deployed.pods(component)[:2])
        return self._evict(first), self._evict(second)

    def _evict(self, pod: str) -> bool:
        metadata = {"name": pod, "namespace": self.deployed.namespace}
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        path = f"/api/v1/namespaces/{self.deployed.namespace}/pods/{pod}/eviction"
        done = self.installed.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(body), check=False)
        if done.returncode and "disruption budget" not in done.stderr:
            raise ClusterError(f"eviction of {pod}: {done.stderr}")
        return not done.returncode

    def restart(self, daemon: str) -> None:
        """Stop one of the cluster's own processes, leave it down for a while, and start it again."""
        with self.cluster() as cluster:
            cluster.daemons.stop(daemon)
            time.sleep(5)  # how long it is away, not something that is waited for
            cluster.start(report=lambda _: None)

    @contextmanager
    def cluster(self) -> Iterator[LocalCluster]:
        """The cluster's processes."""
        with kept_cluster(self.provider.directory) as cluster:
            yield cluster

    def settled(self) -> None:
        """Wait until all is as the object asks, and a while longer. Raises AssertionError, TimeoutError."""
        self.whole()
        self.load.wait_for(AFTER)

    def whole(self) -> None:
        """Wait until the object as it is now is ready, and each of its pods. Raises AssertionError: it never is."""
        try:
            eventually("all is as the object asks", self._is_whole, seconds=READY_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.deployed.diagnosis()}") from None

    def _is_whole(self) -> bool:
        if self.deployed.condition("Ready").get("status") != "True":
            return False
        status = self.deployed.get()["status"]
        wanted = {part: numbers["desired"] for part, numbers in {**status["roles"], "proxy": status["proxy"]}.items()}
        return all(
            [_is_ready(pod) for pod in self.deployed.pods(part)] == [True] * count for part, count in wanted.items()
        )

    def operator_pods(self) -> list[Object]:
        """The operator's own."""
        selector = "--selector=app.kubernetes.io/component=operator"
        return self.installed.kubectl.items("get", "pods", f"--namespace={SYSTEM_NAMESPACE}", selector)


def _container(pod: Object) -> str:
    return str(pod["status"]["containerStatuses"][0]["containerID"].rpartition("/")[2])


def _replaced(pod: Object, container: str) -> bool:
    return _is_ready(pod) and _container(pod) != container


def _is_ready(pod: Object) -> bool:
    """Whether a pod is ready and stays."""
    conditions = pod["status"].get("conditions", [])
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return ready and "deletionTimestamp" not in pod["metadata"]
