"""A resource metrics API behind the API server's aggregation, for the real HorizontalPodAutoscaler controller."""

import json
import ssl
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from epd_operator.controller.certificates import make_pair
from hack.cluster.kubectl import Kubectl

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
SERVICE = {"name": "test-metrics", "namespace": "kube-system"}


class MetricsApi:
    """Serves while the context lasts. Every pod uses `mebibytes` of memory."""

    def __init__(self, kubectl: Kubectl, directory: Path) -> None:
        self.mebibytes = 0
        self._kubectl = kubectl
        pair = make_pair(["localhost"], datetime.now(UTC))
        file = directory / "metrics.pem"
        file.write_bytes(pair.certificate + pair.key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(file)
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urlsplit(self.path)
                content = json.dumps(api.answer(url.path, parse_qs(url.query))).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the library's name
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics-api")

    def __enter__(self) -> Self:
        self._thread.start()
        port = self._server.server_address[1]
        spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": SERVICE, "spec": spec}
        api = {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": f"{VERSION}.{GROUP}"},
            "spec": {
                "group": GROUP,
                "version": VERSION,
                "service": {**SERVICE, "port": port},
                "insecureSkipTLSVerify": True,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
            },
        }
        self._kubectl.apply([service, api])
        self._kubectl("wait", "--for=condition=Available", f"apiservice/{VERSION}.{GROUP}", "--timeout=60s")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kubectl("delete", f"apiservice/{VERSION}.{GROUP}")
        self._kubectl("delete", f"service/{SERVICE['name']}", f"--namespace={SERVICE['namespace']}")
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, path: str, query: dict[str, list[str]]) -> dict[str, Any]:
        """Discovery, or the metrics of the pods that a label selector chooses."""
        api_version = f"{GROUP}/{VERSION}"
        if "/namespaces/" not in path:
            kind = {"name": "pods", "kind": "PodMetrics", "namespaced": True, "verbs": ["list"], "singularName": ""}
            return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": [kind]}
        namespace = path.split("/namespaces/")[1].split("/", maxsplit=1)[0]
        pods = self._kubectl.items("get", "pods", "-n", namespace, "-l", query["labelSelector"][0])
        items = [self._usage(pod["metadata"]) for pod in pods]
        return {"kind": "PodMetricsList", "apiVersion": api_version, "metadata": {}, "items": items}

    def _usage(self, metadata: dict[str, Any]) -> dict[str, Any]:
        return {
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "window": "10s",
            "containers": [{"name": "engine", "usage": {"memory": f"{self.mebibytes}Mi", "cpu": "0"}}],
        }
