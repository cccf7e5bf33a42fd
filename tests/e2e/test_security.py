"""What pods may, what secrets show, and whom engines answer, on a real node."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Self
from urllib.parse import urlsplit

import pytest
from openai import OpenAI

from epd_operator.controller.certificates import CERTIFICATE, KEY, NEXT_CERTIFICATE, NEXT_KEY, encoded, make_pair
from hack.chat import RefusedError
from hack.chat import ask as ask_directly
from hack.cluster.kubectl import Kubectl, Object
from hack.demo_cluster.deployment import Deployed
from hack.demo_cluster.forward import forwarded
from hack.demo_cluster.installation import SYSTEM_NAMESPACE, Installation
from hack.demo_cluster.volumes import Volumes
from hack.images.catalog import ENGINE_SIM
from tests.e2e.conftest import new_namespace
from tests.e2e.simulated import CLAIM, MODEL, simulated
from tests.integration.eventually import eventually
from tests.simulator.requests import chat, data_url, image, new_mark
from tests.simulator.vllm.answers import expected

pytestmark = pytest.mark.e2e

NAME = "guarded"
HUB_TOKEN, USER_KEY = "hf_a-token-for-the-hub", "sk-a-key-of-a-user"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
SYSTEM = f"--namespace={SYSTEM_NAMESPACE}"
WEBHOOK = "epd-operator-webhook"


@pytest.fixture(scope="module")
def deployed(installed: Installation) -> Iterator[Deployed]:
    """E+P+D with a hub token and users' keys, that has answered a request."""
    with new_namespace(installed.kubectl) as namespace:
        volumes = Volumes(installed.provider, installed.kubectl)
        volumes.claim(namespace, CLAIM)
        secrets = {"hub": {"token": HUB_TOKEN}, "users": {"one": USER_KEY}}
        installed.kubectl.apply([secret(name, data) for name, data in secrets.items()], namespace)
        body = simulated(NAME, installed.image(ENGINE_SIM), prefill={"replicas": 1, "drainTimeoutSeconds": 5})
        body["spec"]["model"]["tokenSecretRef"] = {"name": "hub", "key": "token"}
        body["spec"]["proxy"]["apiKeysSecretRef"] = {"name": "users"}
        body["spec"]["transfer"]["kv"] = {"connector": "NixlConnector"}
        made = Deployed(installed.kubectl, namespace, NAME)
        made.apply(body)
        made.wait_ready(180)
        request = question()
        with made.reached() as url, OpenAI(base_url=f"{url}/v1", api_key=USER_KEY, max_retries=0) as client:
            answer = client.chat.completions.create(**request)
            assert answer.choices[0].message.content == expected(request)
        yield made
        made.delete()
        volumes.remove(namespace)


def secret(name: str, data: dict[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def question() -> Object:
    mark = new_mark()
    return {**chat(mark, image(data_url(mark))), "model": MODEL}


def all_pods(deployed: Deployed) -> list[Object]:
    return [pod for component in ("encode", "prefill", "decode", "proxy") for pod in deployed.pods(component)]


def test_only_the_proxy_has_a_token_of_its_service_account(deployed: Deployed) -> None:
    having = set()
    for pod in all_pods(deployed):
        name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
        done = deployed.kubectl("exec", name, f"--namespace={deployed.namespace}", "--", "ls", TOKEN, check=False)
        assert bool(done.returncode) == ("No such file" in done.stderr), done.stderr
        if not done.returncode:
            having.add(labels["app.kubernetes.io/component"])
    assert having == {"proxy"}


def test_no_secret_is_in_objects_or_logs(deployed: Deployed, kubectl: Kubectl) -> None:
    where = f"--namespace={deployed.namespace}"
    made = [kubectl.json("get", f"secret/{NAME}-{which}-key", where)["data"]["key"] for which in ("engine", "uuid")]
    words = [HUB_TOKEN, USER_KEY, *(base64.b64decode(key).decode() for key in made)]
    kinds = "epddeployments,deployments,pods,configmaps,controllerrevisions,services,events"
    texts = {"objects": json.dumps(kubectl.items("get", kinds, where))}
    for pod in all_pods(deployed):
        texts[pod["metadata"]["name"]] = kubectl("logs", f"pod/{pod['metadata']['name']}", where).stdout
    selector = "--selector=app.kubernetes.io/name=epd-operator"
    texts["operator"] = kubectl("logs", SYSTEM, selector, "--tail=-1", "--prefix").stdout
    assert all(texts.values()), "something was not read"
    shown = [(name, word[:4]) for name, text in texts.items() for word in words if word in text]
    assert not shown


def test_engines_answer_only_who_has_the_key(deployed: Deployed) -> None:
    for component in ("encode", "prefill", "decode"):
        [pod] = deployed.pods(component)
        with forwarded(deployed.kubectl, deployed.namespace, f"pod/{pod['metadata']['name']}") as url:
            for key in (None, USER_KEY):
                with pytest.raises(RefusedError, match="401"):
                    ask_directly(url, question(), key)


def test_policies_let_only_roles_and_proxy_reach_the_engines(deployed: Deployed, kubectl: Kubectl) -> None:
    """Enforced where the cluster's network plugin does so; the local cluster's does not."""
    policies = kubectl.items("get", "networkpolicies", f"--namespace={deployed.namespace}")
    found = {policy["metadata"]["name"]: policy["spec"] for policy in policies}
    [engines] = [spec for spec in found.values() if "matchExpressions" in spec["podSelector"]]
    roles = ["decode", "encode", "prefill"]
    assert sorted(engines["podSelector"]["matchExpressions"][0]["values"]) == roles
    [rule] = engines["ingress"]
    [peer] = rule["from"]
    assert sorted(peer["podSelector"]["matchExpressions"][0]["values"]) == [*roles, "proxy"]
    assert peer["podSelector"]["matchLabels"] == engines["podSelector"]["matchLabels"]


def served_certificates(kubectl: Kubectl) -> list[bytes]:
    """What each webhook pod shows."""
    pods = kubectl.items("get", "pods", SYSTEM, "--selector=app.kubernetes.io/component=webhook")
    shown = []
    for pod in (pod for pod in pods if "deletionTimestamp" not in pod["metadata"]):
        with forwarded(kubectl, SYSTEM_NAMESPACE, f"pod/{pod['metadata']['name']}", 9443) as url:
            address = urlsplit(url)
            shown.append(ssl.get_server_certificate((str(address.hostname), address.port or 0)).encode())
    return shown


class Applying:
    """Objects that are applied again and again, right ones and wrong ones, to a webhook that must answer."""

    def __init__(self, kubectl: Kubectl, namespace: str, image_name: str) -> None:
        right, wrong = simulated("right", image_name), simulated("wrong", image_name)
        wrong["spec"]["encode"]["parallelism"] = {"tensor": 2}
        wrong["spec"]["encode"]["preprocessing"] = {"tensorIPC": "torch_shm"}
        self._bodies, self._where = (right, wrong), (kubectl, namespace)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.seen: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        kubectl, namespace = self._where
        while not self._ended.is_set():
            for body in self._bodies:
                options = ["--server-side", f"--namespace={namespace}", "--dry-run=server", "--filename=-"]
                done = kubectl("apply", *options, stdin=json.dumps(body), check=False)
                refused = "torch-shm-single-rank" in done.stderr
                said = "allowed" if not done.returncode else "refused" if refused else done.stderr
                self.seen.append(f"{body['metadata']['name']}: {said}")


def test_the_webhooks_certificate_is_replaced_while_objects_are_applied(
    installed: Installation, kubectl: Kubectl, namespace: str
) -> None:
    installed.install({"webhook.failurePolicy": "Fail"})  # one that cannot be reached would be seen
    try:
        image_name = installed.image(ENGINE_SIM)
        names = [f"{WEBHOOK}.{SYSTEM_NAMESPACE}.svc"]
        held = kubectl.json("get", f"secret/{WEBHOOK}", SYSTEM)["data"]
        following = make_pair(names, datetime.now(UTC) - timedelta(minutes=15))  # long enough known to be used
        patch = {"data": encoded({NEXT_CERTIFICATE: following.certificate, NEXT_KEY: following.key})}
        with Applying(kubectl, namespace, image_name) as applying:
            eventually("the webhook answers", lambda: len(applying.seen) > 4, seconds=60)
            kubectl("patch", f"secret/{WEBHOOK}", SYSTEM, "--type=merge", f"--patch={json.dumps(patch)}")
            eventually(
                "all pods show it", lambda: set(served_certificates(kubectl)) == {following.certificate}, seconds=240
            )
            before = len(applying.seen)
            eventually("and answer", lambda: len(applying.seen) > before + 4, seconds=60)
        assert set(applying.seen) == {"right: allowed", "wrong: refused"}
        renewed = kubectl.json("get", f"secret/{WEBHOOK}", SYSTEM)["data"]
        assert renewed[CERTIFICATE] != held[CERTIFICATE]
        assert set(renewed) == {CERTIFICATE, KEY}
    finally:
        installed.install()
