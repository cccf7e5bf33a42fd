"""The manager of kubernetes-sigs/lws, whose DisaggregatedSet is the nearest relative: built from a checkout."""

import base64
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from benchmarks.operator.subject import Subject
from epd_operator.controller.certificates import make_pair
from hack.cluster.cache import cache_directory, digest, locked
from hack.cluster.kubectl import Kubectl, Object

JSON_PATCH = "application/json-patch+json"
HOST = "127.0.0.1"
APPLIED = ("Namespace", "CustomResourceDefinition", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def build(checkout: Path) -> Path:
    """The manager, built once for each state of the sources. Raises CalledProcessError: it does not build."""
    sources = [path for folder in ("api", "client-go", "cmd", "pkg") for path in (checkout / folder).rglob("*.go")]
    program = cache_directory() / f"lws-{digest(checkout, [*sources, checkout / 'go.mod'])}"
    with locked(program.with_suffix(".lock")):
        if not program.exists():
            print(f"building {program.name}; the first time this takes minutes")
            unfinished = program.with_suffix(".unfinished")
            subprocess.run(["nice", "go", "build", "-o", unfinished, "./cmd"], cwd=checkout, check=True)
            shutil.move(unfinished, program)
    return program


class Lws(Subject):
    """The manager with its defaults and webhooks, one object a DisaggregatedSet of encode, prefill and decode."""

    name = "lws"
    collection = "/apis/disaggregatedset.x-k8s.io/v1/namespaces/{}/disaggregatedsets"
    children = "/apis/leaderworkerset.x-k8s.io/v1/namespaces/{}/leaderworkersets"
    condition = "Available"
    ready = "Starting workers"

    def __init__(self, kubectl: Kubectl, directory: Path, checkout: Path) -> None:
        super().__init__(kubectl, directory)
        self._checkout = checkout
        self._program = build(checkout)
        self._webhook, self._metrics, self._health = _free_ports(3)

    def install(self) -> None:
        """Its own manifests but for what runs in the cluster; webhooks are reached at a loopback address."""
        super().install()
        pair = make_pair([HOST], datetime.now(UTC))
        certificates = self.directory / "certificates"
        certificates.mkdir()
        (certificates / "tls.crt").write_bytes(pair.certificate)
        (certificates / "tls.key").write_bytes(pair.key)
        authority = base64.b64encode(pair.certificate).decode()
        text = self.kubectl("kustomize", self._checkout / "config" / "default").stdout
        found = [body for body in yaml.load_all(text, yaml.CSafeLoader) if body and body["kind"] in APPLIED]
        self.kubectl.apply([self._local(body, authority) for body in found])
        self.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        (self.directory / "manager.yaml").write_text(json.dumps(self._configuration(certificates)))

    def body(self, name: str, replicas: int) -> Object:
        """One object."""
        container = {
            "name": "model",
            "image": "localhost/model:1",
            "env": [{"name": "SOME_SETTING", "value": "0"}],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        }
        template = {"spec": {"terminationGracePeriodSeconds": 0, "containers": [container]}}
        spec = {"replicas": replicas, "leaderWorkerTemplate": {"size": 1, "workerTemplate": template}}
        return {
            "apiVersion": "disaggregatedset.x-k8s.io/v1",
            "kind": "DisaggregatedSet",
            "metadata": {"name": name},
            "spec": {"roles": [{"name": role, "spec": spec} for role in ("encode", "prefill", "decode")]},
        }

    def change(self, value: str) -> tuple[Any, str]:
        """A variable of the encoders."""
        path = "/spec/roles/0/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/env/0/value"
        return [{"op": "replace", "path": path, "value": value}], JSON_PATCH

    def command(self) -> Sequence[str | Path]:
        """As in its chart."""
        return [self._program, "--config=manager.yaml", "--zap-log-level=2", f"--kubeconfig={self.kubeconfig}"]

    def _local(self, body: Object, authority: str) -> Object:
        body["metadata"].pop("annotations", None)
        if body["kind"] == "CustomResourceDefinition" and len(body["spec"]["versions"]) == 1:
            body["spec"].pop("conversion", None)
        for webhook in body.get("webhooks") or []:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://{HOST}:{self._webhook}{path}", "caBundle": authority}
        return body

    def _configuration(self, certificates: Path) -> Object:
        return {
            "apiVersion": "config.lws.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "leaderElection": {"leaderElect": True},
            "internalCertManagement": {"enable": False},
            "webhook": {"host": HOST, "port": self._webhook, "certDir": os.fspath(certificates)},
            "metrics": {"bindAddress": f"{HOST}:{self._metrics}"},
            "health": {"healthProbeBindAddress": f"{HOST}:{self._health}"},
        }


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind((HOST, 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
