"""The operator of this project."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.operator.subject import HOME, Subject
from hack.cluster.definitions import apply_crds
from hack.cluster.kubectl import Object
from hack.cluster.rest import MERGE


class EpdOperator(Subject):
    """`epd-operator run` with its defaults, one object an EPDDeployment of encode, prefill and decode."""

    name = "epd-operator"
    collection = "/apis/epd.dev/v1alpha1/namespaces/{}/epddeployments"
    children = "/apis/apps/v1/namespaces/{}/deployments"
    condition = "Ready"
    ready = "the cluster was read"

    def install(self) -> None:
        """The CRDs, and the identity."""
        super().install()
        apply_crds(self.kubectl)

    def body(self, name: str, replicas: int) -> Object:
        """One object."""
        role = {"replicas": replicas}
        return {
            "apiVersion": "epd.dev/v1alpha1",
            "kind": "EPDDeployment",
            "metadata": {"name": name},
            "spec": {
                "model": {"id": "Qwen/Qwen3-VL-8B-Instruct"},
                "engine": {"version": "0.33.0"},
                "encode": role,
                "prefill": role,
                "decode": role,
                "proxy": {"replicas": 1},
            },
        }

    def change(self, value: str) -> tuple[Any, str]:
        """A variable of the encoders."""
        return {"spec": {"encode": {"env": [{"name": "SOME_SETTING", "value": value}]}}}, MERGE

    def command(self) -> Sequence[str | Path]:
        """As in an image."""
        program = "from epd_operator.controller.main import main; main()"
        options = [f"--kubeconfig={self.kubeconfig}", f"--lease-namespace={HOME}", "--port=0"]
        return [sys.executable, "-c", program, "run", *options]
