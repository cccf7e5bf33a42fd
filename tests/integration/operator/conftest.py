"""What the tests of the operator share."""

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from epd_operator.engine import drain as engine_drain
from epd_operator.plan.rollout import drain as rollout_drain
from hack.cluster.access import Access
from hack.cluster.kubectl import Kubectl, Object
from tests.integration.eventually import eventually
from tests.integration.operator.identity import Identity
from tests.integration.operator.process import OperatorProcess

EXAMPLES = Path(__file__).parents[3] / "examples"

StartOperator = Callable[..., OperatorProcess]


@pytest.fixture(scope="session")
def operator(cluster: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorProcess]:
    """The operator of all objects without an operatorClass, for all tests that leave it alone."""
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with OperatorProcess(cluster.kubeconfig, log, "run", "--port=0", "--lease-name=tests") as process:
        process.wait_for("the cluster was read")
        yield process


@pytest.fixture
def start_operator(cluster: Access, namespace: str, tmp_path: Path) -> Iterator[StartOperator]:
    """Start an operator of this test's own, for objects whose class is the namespace's name, and only there."""
    started: list[OperatorProcess] = []
    numbers = itertools.count()

    def start(*options: str) -> OperatorProcess:
        process = OperatorProcess(
            cluster.kubeconfig,
            tmp_path / f"operator-{next(numbers)}.log",
            "run",
            f"--namespace={namespace}",
            f"--operator-class={namespace}",
            f"--lease-namespace={namespace}",
            "--port=0",
            *options,
        )
        process.start()
        started.append(process)
        return process

    yield start
    for process in started:
        process.__exit__()


@pytest.fixture
def own_operator(start_operator: StartOperator) -> OperatorProcess:
    """An operator of this test's own."""
    process = start_operator()
    process.wait_for("the cluster was read")
    return process


@pytest.fixture
def quick_routing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every proxy of this test's operator has noticed a change within one second: rollouts take ten times less."""
    _route_within(monkeypatch, 1)


@pytest.fixture
def no_routing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies notice at once: rollouts of instances that get ready at once take as long as their requests."""
    _route_within(monkeypatch, 0)


def _route_within(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    for module in (engine_drain, rollout_drain):
        monkeypatch.setattr(module, "ROUTING", seconds)


class Deployments:
    """EPDDeployments of one namespace, by kubectl."""

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        self.kubectl = kubectl
        self.namespace = namespace

    def apply(self, body: Object) -> None:
        """Apply one."""
        self.kubectl.apply([body], self.namespace)

    def get(self, name: str = "vision") -> Object:
        """Read one."""
        return self.kubectl.json("get", f"epd/{name}", "-n", self.namespace)

    def status(self, name: str = "vision") -> Object:
        """Its status; empty before there is one."""
        found: Object = self.get(name).get("status", {})
        return found

    def condition(self, kind: str, name: str = "vision") -> Object:
        """One condition; empty where it is not there."""
        conditions = self.status(name).get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == kind), {})

    def wait(self, kind: str, status: str = "True", name: str = "vision", *, reason: str = "") -> Object:
        """Wait for a condition of the latest generation. Returns it."""

        def holds() -> Object:
            body = self.get(name)
            conditions = body.get("status", {}).get("conditions", [])
            for condition in conditions:
                if (
                    (condition["type"], condition["status"]) == (kind, status)
                    and condition.get("observedGeneration") == body["metadata"]["generation"]
                    and reason in ("", condition["reason"])
                ):
                    found: Object = condition
                    return found
            return {}

        try:
            found = eventually(f"{kind} is {status} {reason}", holds, seconds=60)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.status(name)}") from None
        if (kind, status) == ("Ready", "True"):
            eventually("what serves has its budgets, which come last", lambda: self._guarded(name), seconds=60)
        return found

    def _guarded(self, name: str) -> bool:
        budgets = self.children("poddisruptionbudgets", name)
        workloads = self.children("deployments", name)
        return all(each in budgets for each, body in workloads.items() if body.get("status", {}).get("readyReplicas"))

    def patch(self, spec: Object, name: str = "vision") -> None:
        """Merge into the spec of one."""
        patch = json.dumps({"spec": spec})
        self.kubectl("patch", f"epd/{name}", "-n", self.namespace, "--type=merge", "-p", patch)

    def children(self, kind: str, name: str = "vision") -> dict[str, Object]:
        """Its objects of one kind, by name."""
        found = self.kubectl.items("get", kind, "-n", self.namespace, "-l", f"app.kubernetes.io/instance={name}")
        return {body["metadata"]["name"]: body for body in found}


@pytest.fixture
def epd(kubectl: Kubectl, namespace: str) -> Deployments:
    """The EPDDeployments of this test's namespace."""
    return Deployments(kubectl, namespace)


def vision(name: str = "vision", **spec: Any) -> Object:
    """A small E+PD object on GPUs."""
    return {
        "apiVersion": "epd.dev/v1alpha1",
        "kind": "EPDDeployment",
        "metadata": {"name": name},
        "spec": {
            "model": {"id": "Qwen/Qwen3-VL-8B-Instruct"},
            "engine": {"version": "0.33.0"},
            "encode": {"replicas": 1},
            "decode": {"replicas": 1},
            "proxy": {"replicas": 1},
            **spec,
        },
    }


@pytest.fixture
def identity(kubectl: Kubectl, namespace: str, tmp_path: Path) -> Identity:
    """A ServiceAccount in this test's namespace, so far without any rights."""
    return Identity(kubectl, namespace, tmp_path)
