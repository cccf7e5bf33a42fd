"""The tiny model, written into a claim by a Job: by the image that will serve it, on any cluster."""

from pathlib import Path

from hack.cluster.errors import ClusterError
from hack.cluster.kubectl import Kubectl, Object

SCRIPT = Path(__file__).resolve().parents[1] / "tiny_model.py"
NAME = "tiny-model"
CLAIM = "models"
SECONDS = 300


def write_model(kubectl: Kubectl, namespace: str, image: str, architecture: str = "qwen2-vl") -> None:
    """Write `tiny-<architecture>` into the claim `models`, unless it was done. Raises ClusterError: it fails."""
    job = f"{NAME}-{architecture}"
    if not kubectl.exists(f"job/{job}", f"--namespace={namespace}"):
        kubectl.apply([_script(), _job(job, image, architecture)], namespace)
    done = kubectl(
        "wait", f"job/{job}", f"--namespace={namespace}", "--for=condition=Complete", f"--timeout={SECONDS}s",
        check=False, timeout=SECONDS + 30,
    )  # fmt: skip
    if done.returncode:
        where = f"--namespace={namespace}"
        said = kubectl("logs", f"job/{job}", where, "--tail=20", check=False).stdout
        events = kubectl("get", "events", where, "--output=custom-columns=:.message", check=False).stdout
        raise ClusterError(f"job {job} in namespace {namespace} does not complete:\n{said or events}".rstrip())


def _script() -> Object:
    data = {SCRIPT.name: SCRIPT.read_text()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": data}


def _job(name: str, image: str, architecture: str) -> Object:
    mounts = [("models", "/models"), ("script", "/script"), ("tmp", "/tmp")]
    container = {
        "name": "model",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", f"/script/{SCRIPT.name}"],
        "args": [f"/models/tiny-{architecture}", "--architecture", architecture],
        "env": [{"name": "HF_HUB_OFFLINE", "value": "1"}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": volume, "mountPath": path} for volume, path in mounts],
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "fsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "models", "persistentVolumeClaim": {"claimName": CLAIM}},
            {"name": "script", "configMap": {"name": NAME}},
            {"name": "tmp", "emptyDir": {}},
        ],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }
