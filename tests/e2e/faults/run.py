"""Faults one after the other, each on a deployment that is whole."""

from collections.abc import Iterator
from contextlib import contextmanager

from hack.cluster.errors import ClusterError
from hack.cluster.provider import Local
from hack.demo_cluster.deployment import Deployed
from hack.demo_cluster.installation import Installation
from hack.demo_cluster.volumes import Volumes
from hack.images.catalog import ENGINE_SIM
from tests.e2e.faults.faults import Fault
from tests.e2e.faults.load import Load
from tests.e2e.faults.report import Result, judge
from tests.e2e.faults.scene import AFTER, NAME, READY_SECONDS, Scene, deployment
from tests.e2e.simulated import CLAIM


@contextmanager
def deployed(installed: Installation, namespace: str) -> Iterator[Deployed]:
    """The deployment that is broken, in a namespace. Raises ClusterError: it does not come up."""
    volumes = Volumes(installed.provider, installed.kubectl)
    volumes.claim(namespace, CLAIM)
    made = Deployed(installed.kubectl, namespace, NAME)
    made.apply(deployment(installed.image(ENGINE_SIM)))
    try:
        made.wait_ready(READY_SECONDS)
        yield made
    finally:
        made.delete()
        volumes.remove(namespace)


def suffer(installed: Installation, broken: Deployed, fault: Fault, in_flight: int) -> Result:
    """Strike under load, wait until all is well, and judge.

    Raises ClusterError, AssertionError, TimeoutError: it stays ill.
    """
    if not isinstance(installed.provider, Local):
        raise ClusterError(
            "faults are for the local cluster: its processes are killed, and its Services reached from here"
        )
    service = installed.kubectl.json("get", f"service/{NAME}-proxy", f"--namespace={broken.namespace}")
    url = f"http://{service['spec']['clusterIP']}:{service['spec']['ports'][0]['port']}"
    with Load(url, in_flight) as load:
        scene = Scene(installed, broken, installed.provider, load)
        load.wait_for(AFTER)
        fault.act(scene)
        scene.settled()
    return judge(fault.name, load.outcomes, scene.strike, may_fail=fault.may_fail, may_break=fault.may_break)
