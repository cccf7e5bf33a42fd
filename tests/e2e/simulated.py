"""EPDDeployments whose engines are simulated: cheap enough for every wiring, many instances, and faults."""

from typing import Any

from openai import OpenAI

from hack.cluster.kubectl import Kubectl, Object

MODEL = "sim/vision"
CLAIM = "embeddings"


def simulated(name: str, image: str, release: str = "0.33.0", **spec: Any) -> Object:
    """An object on CPUs, by default E+PD over a shared directory."""
    engine = {
        "version": release,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "env": [{"name": "EPD_SIM_RELEASE", "value": release}],
    }
    body: Object = {
        "model": {"id": MODEL, "architecture": "Qwen2VLForConditionalGeneration"},
        "engine": engine,
        "device": {"type": "CPU"},
        "encode": {"replicas": 1, "drainTimeoutSeconds": 5},
        "decode": {"replicas": 1, "drainTimeoutSeconds": 20},
        "transfer": {"embeddings": {"volume": {"persistentVolumeClaim": {"claimName": CLAIM}}}},
        "proxy": {"replicas": 1, "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}}},
        **spec,
    }
    body = {key: value for key, value in body.items() if value is not None}
    return {
        "apiVersion": "epd.dev/v1alpha1",
        "kind": "EPDDeployment",
        "metadata": {"name": name},
        "spec": body,
    }


def restarts(kubectl: Kubectl, namespace: str) -> int:
    """Restarts of all containers of a namespace."""
    pods = kubectl.items("get", "pods", f"--namespace={namespace}")
    statuses = [status for pod in pods for status in pod["status"].get("containerStatuses", [])]
    return sum(status["restartCount"] for status in statuses)


def ask(url: str, request: dict[str, Any]) -> str:
    """What a deployment answers to a chat request, by the client that users have."""
    with OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=60) as client:
        answer = client.chat.completions.create(**request)
        if not request["stream"]:
            return str(answer.choices[0].message.content)
        return "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)
