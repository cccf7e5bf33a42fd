"""Asks the API server to judge two objects without keeping them: a right one and one that breaks a rule."""

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
SECONDS = 90


def judge(role: dict[str, object]) -> tuple[int, str]:
    """Apply an object with such an encoder, as a dry run. Returns status and message."""
    namespace = (ACCOUNT / "namespace").read_text()
    host = f"{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}"
    url = f"https://{host}/apis/epd.dev/v1alpha1/namespaces/{namespace}/epddeployments?dryRun=All"
    spec = {"model": {"id": "test/test"}, "engine": {"version": "0.33.0"}, "encode": role, "decode": {}}
    body = {
        "apiVersion": "epd.dev/v1alpha1",
        "kind": "EPDDeployment",
        "metadata": {"name": "helm-test"},
        "spec": spec,
    }
    headers = {"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    try:
        with urllib.request.urlopen(request, context=trust, timeout=20) as response:
            return response.status, "accepted"
    except urllib.error.HTTPError as error:
        return error.code, json.load(error).get("message", "")


def main() -> int:
    """Exit status 0 if both are judged as they should."""
    right = judge({})
    print("a right object:", *right)
    if right[0] != 201:
        return 1
    if "--webhook" not in sys.argv:
        return 0
    end = time.monotonic() + SECONDS
    while True:
        wrong = judge({"parallelism": {"tensor": 2}, "preprocessing": {"tensorIPC": "torch_shm"}})
        if "torch-shm-single-rank" in wrong[1] or time.monotonic() > end:
            break
        time.sleep(2)  # the API server learns of the webhook's certificate
    print("a wrong object:", *wrong)
    return 0 if "torch-shm-single-rank" in wrong[1] else 1


sys.exit(main())
