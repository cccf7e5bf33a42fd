"""What happens to a deployment under load. Each function strikes, and returns when all should be well again."""

from collections.abc import Callable
from dataclasses import dataclass

from hack.cluster.errors import ClusterError
from hack.demo_cluster.installation import SYSTEM_NAMESPACE
from tests.e2e.faults.scene import AFTER, READY_SECONDS, Scene, environment
from tests.integration.eventually import eventually

Act = Callable[[Scene], None]


@dataclass(frozen=True)
class Fault:
    """One line of the table."""

    name: str
    act: Act
    may_fail: bool = False
    """A killed pod takes its requests along; whatever was planned takes none."""
    may_break: bool = False
    """It is what clients are connected to that dies: they see broken connections, and no words."""


def _killed(component: str, namespace: str = "") -> Act:
    def act(scene: Scene) -> None:
        scene.kill(namespace or scene.deployed.namespace, component)

    return act


def _restarted(daemon: str) -> Act:
    return lambda scene: scene.restart(daemon)


def _evicted(component: str) -> Act:
    def act(scene: Scene) -> None:
        evicted = scene.evict(component)
        if evicted != (True, False):
            raise ClusterError(f"of two {component} pods the budget lets one go: {evicted}")

    return act


def _operator_killed(scene: Scene) -> None:
    scene.kill(SYSTEM_NAMESPACE, "operator")
    scene.deployed.patch({"proxy": {"service": {"annotations": {"test/after-the-kill": "1"}}}})
    service = ("get", f"service/{scene.deployed.name}-proxy", f"--namespace={scene.deployed.namespace}")

    def applied() -> bool:
        annotations = scene.installed.kubectl.json(*service)["metadata"].get("annotations", {})
        return "test/after-the-kill" in annotations

    eventually("the operator works again", applied, seconds=READY_SECONDS)


def _replicas(scene: Scene) -> None:
    scene.deployed.patch(
        {role: {"replicas": 3} for role in ("encode", "prefill", "decode")} | {"proxy": {"replicas": 3}}
    )
    scene.whole()
    scene.load.wait_for(AFTER)
    scene.deployed.patch(
        {role: {"replicas": 2} for role in ("encode", "prefill", "decode")} | {"proxy": {"replicas": 2}}
    )


def _helm_upgrade(scene: Scene) -> None:
    before = {pod["metadata"]["name"] for pod in scene.operator_pods()}
    scene.installed.install({"operator.workers": 5, "webhook.podAnnotations": {"test/upgraded": "1"}})
    if before & {
        pod["metadata"]["name"] for pod in scene.operator_pods() if "deletionTimestamp" not in pod["metadata"]
    }:
        raise ClusterError("the upgrade replaced no pod of the operator")


def _new_template(scene: Scene) -> None:
    changed = {"template": {"metadata": {"annotations": {"test/rolled": "1"}}}}
    scene.deployed.patch(dict.fromkeys(("encode", "prefill", "decode"), changed) | {"proxy": changed})


def _new_release(scene: Scene) -> None:
    old = scene.deployed.get()["status"]["currentRevision"]
    scene.deployed.patch({"engine": {"version": "0.33.0", "env": environment("0.33.0")}})
    scene.whole()
    if scene.deployed.get()["status"]["currentRevision"] == old:
        raise ClusterError("the new release has the revision of the old one")


def _broken_release(scene: Scene) -> None:
    before = scene.deployed.get()
    old, engine = before["status"]["currentRevision"], before["spec"]["engine"]
    broken = {"version": "0.31.0", "env": environment("0.31.0", EPD_SIM_START="crash:ValueError: it cannot start")}
    scene.deployed.patch({"engine": broken})
    stalled = eventually("Stalled", lambda: scene.deployed.condition("Stalled"), seconds=READY_SECONDS)
    if stalled["reason"] != "ProgressDeadlineExceeded" or scene.deployed.condition("Available")["status"] != "True":
        raise ClusterError(f"a broken release is not stalled while the old one serves: {scene.deployed.diagnosis()}")
    scene.load.wait_for(AFTER)
    scene.deployed.patch({"engine": engine})
    scene.whole()
    if scene.deployed.get()["status"]["currentRevision"] != old:
        raise ClusterError("the release before the broken one does not serve")


SMOKE = Fault("kill a decode", _killed("decode"), may_fail=True)
FAULTS = (
    Fault("nothing", lambda _: None),
    Fault("kill an encoder", _killed("encode"), may_fail=True),
    Fault("kill a prefill", _killed("prefill"), may_fail=True),
    SMOKE,
    Fault("kill a proxy", _killed("proxy"), may_fail=True, may_break=True),
    Fault("kill the operator", _operator_killed),
    Fault("restart the API server", _restarted("kube-apiserver")),
    Fault("restart the kubelet", _restarted("kubelet")),
    Fault("restart the container runtime", _restarted("containerd")),
    Fault("evict an encoder", _evicted("encode")),
    Fault("evict a prefill", _evicted("prefill")),
    Fault("evict a decode", _evicted("decode")),
    Fault("evict a proxy", _evicted("proxy")),
    Fault("change replicas, 2 to 3 to 2", _replicas),
    Fault("helm upgrade", _helm_upgrade),
    Fault("roll out a change of all pods", _new_template),
    Fault("roll out a new engine release", _new_release),
    Fault("roll out a release that does not start, and take it back", _broken_release),
)
