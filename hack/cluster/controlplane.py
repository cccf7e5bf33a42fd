"""etcd, API server, controller manager and scheduler: all of Kubernetes that needs no node, and no root."""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hack.cluster.daemons import Daemons
from hack.cluster.errors import ClusterError
from hack.cluster.health import answers
from hack.cluster.kubeconfig import write_kubeconfigs
from hack.cluster.pki import CA, SERVICE_ACCOUNT, make_certificates
from hack.cluster.ports import is_free
from hack.cluster.programs import Programs
from hack.cluster.settings import Layout, Settings, write_if_changed

LOOPBACK = "127.0.0.1"
# In the order in which they are started; they end in the opposite order.
COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")

AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "None", "nonResourceURLs": ["/*"]}, {"level": "Metadata", "omitManagedFields": True}],
}


@dataclass(frozen=True)
class ControlPlane:
    """One control plane. With a node the pods reach it at the bridge's address, without one it listens on loopback."""

    settings: Settings
    layout: Layout
    programs: Programs
    daemons: Daemons

    @property
    def host(self) -> str:
        """The address the API server listens on."""
        return self.settings.bridge_address if self.settings.node else LOOPBACK

    @property
    def server(self) -> str:
        """The API server's base URL."""
        return f"https://{self.host}:{self.settings.ports.apiserver}"

    def start(self, timeout: float) -> None:
        """Start what does not run, and wait until all of it is ready.

        Raises ClusterError: a port is taken, or a component is not ready within `timeout` seconds.
        """
        self._require_ports()
        make_certificates(self.layout.pki, self.settings)
        write_kubeconfigs(self.layout, self.server)
        ports = self.settings.ports
        self.daemons.ensure("etcd", self._etcd())
        self.daemons.wait("etcd", "etcd is healthy", lambda: answers(f"{self._etcd_url}/health"), timeout)
        self.daemons.ensure("kube-apiserver", self._apiserver(), self._audit_files())
        ready = f"{self.server}/readyz"
        authority = self._pki(f"{CA}.crt")
        self.daemons.wait("kube-apiserver", "the API server is ready", lambda: answers(ready, authority), timeout)
        self.daemons.ensure(
            "kube-controller-manager", self._controller_manager(), [self.layout.kubeconfig("controller-manager")]
        )
        self.daemons.ensure("kube-scheduler", self._scheduler(), [self.layout.kubeconfig("scheduler")])
        for name, port in (("kube-controller-manager", ports.controller_manager), ("kube-scheduler", ports.scheduler)):
            url = f"https://{LOOPBACK}:{port}/healthz"
            self.daemons.wait(name, f"{name} is healthy", partial(answers, url), timeout)

    def stop(self) -> None:
        """End all components. Data stays."""
        for name in reversed(COMPONENTS):
            self.daemons.stop(name)

    def _require_ports(self) -> None:
        ports = self.settings.ports
        needed = [
            ("etcd", LOOPBACK, ports.etcd),
            ("etcd", LOOPBACK, ports.etcd_peer),
            ("kube-apiserver", self.host, ports.apiserver),
            ("kube-controller-manager", LOOPBACK, ports.controller_manager),
            ("kube-scheduler", LOOPBACK, ports.scheduler),
        ]
        for name, host, port in needed:
            if self.daemons.running(name) is None and not is_free(host, port):
                raise ClusterError(
                    f"{name} needs {host}:{port} and something else listens there; stop it or use --port-base"
                )

    @property
    def _etcd_url(self) -> str:
        return f"http://{LOOPBACK}:{self.settings.ports.etcd}"

    def _pki(self, file: str) -> Path:
        return self.layout.pki / file

    def _component(self, name: str, *flags: str) -> list[str | Path]:
        return [self.programs.localcluster, name, *flags]

    def _etcd(self) -> list[str | Path]:
        peer = f"http://{LOOPBACK}:{self.settings.ports.etcd_peer}"
        return self._component(
            "etcd",
            "--name=local",
            f"--data-dir={self.layout.directory / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=local={peer}",
            "--unsafe-no-fsync",  # the data need not survive a power cut, and the start is faster
            "--log-level=warn",
        )

    def _apiserver(self) -> list[str | Path]:
        return self._component(
            "kube-apiserver",
            f"--etcd-servers={self._etcd_url}",
            f"--bind-address={self.host}",
            f"--secure-port={self.settings.ports.apiserver}",
            f"--advertise-address={self.host}",
            # The Endpoints of kubernetes.default may not hold a loopback address.
            *([] if self.settings.node else ["--endpoint-reconciler-type=none"]),
            f"--service-cluster-ip-range={self.settings.service_cidr}",
            f"--client-ca-file={self._pki(f'{CA}.crt')}",
            f"--tls-cert-file={self._pki('apiserver.crt')}",
            f"--tls-private-key-file={self._pki('apiserver.key')}",
            f"--service-account-key-file={self._pki(f'{SERVICE_ACCOUNT}.pub')}",
            f"--service-account-signing-key-file={self._pki(f'{SERVICE_ACCOUNT}.key')}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--allow-privileged=true",
            f"--kubelet-certificate-authority={self._pki(f'{CA}.crt')}",
            f"--kubelet-client-certificate={self._pki('apiserver-kubelet-client.crt')}",
            f"--kubelet-client-key={self._pki('apiserver-kubelet-client.key')}",
            "--kubelet-preferred-address-types=InternalIP",
            *self._aggregation_flags(),
            *self._audit_flags(),
            "--profiling=false",
        )

    def _aggregation_flags(self) -> list[str]:
        """For APIService objects, such as a metrics server's."""
        return [
            f"--requestheader-client-ca-file={self._pki(f'{CA}.crt')}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={self._pki('front-proxy-client.crt')}",
            f"--proxy-client-key-file={self._pki('front-proxy-client.key')}",
        ]

    def _audit_files(self) -> list[Path]:
        if not self.settings.audit:
            return []
        return [write_if_changed(self.layout.configuration / "audit-policy.yaml", json.dumps(AUDIT_POLICY, indent=1))]

    def _audit_flags(self) -> list[str]:
        return [
            flag
            for policy in self._audit_files()
            for flag in (
                f"--audit-policy-file={policy}",
                f"--audit-log-path={self.layout.audit_log}",
                "--audit-log-mode=blocking",  # a request is in the log when it is over, not seconds later
                "--audit-log-maxsize=100000",  # MB: one file, so that a reader's offset stays right
            )
        ]

    def _controller_manager(self) -> list[str | Path]:
        return self._component(
            "kube-controller-manager",
            *self._client_flags("controller-manager"),
            f"--secure-port={self.settings.ports.controller_manager}",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self._pki(f'{SERVICE_ACCOUNT}.key')}",
            f"--root-ca-file={self._pki(f'{CA}.crt')}",
            f"--cluster-signing-cert-file={self._pki(f'{CA}.crt')}",
            f"--cluster-signing-key-file={self._pki(f'{CA}.key')}",
            f"--cluster-cidr={self.settings.pod_cidr}",
            f"--service-cluster-ip-range={self.settings.service_cidr}",
            # Each controller gets a token of its own; at the default 20 requests/s that delays the first work.
            "--kube-api-qps=300",
            "--kube-api-burst=500",
            "--horizontal-pod-autoscaler-sync-period=2s",  # by default 15 s, for which a test would wait
            "--allocate-node-cidrs=false",  # the one node's range is fixed in the network plugin's configuration
        )

    def _scheduler(self) -> list[str | Path]:
        return self._component(
            "kube-scheduler", *self._client_flags("scheduler"), f"--secure-port={self.settings.ports.scheduler}"
        )

    def _client_flags(self, user: str) -> list[str]:
        kubeconfig = self.layout.kubeconfig(user)
        return [
            f"--kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            "--leader-elect=false",  # one replica: no Lease to write
            f"--bind-address={LOOPBACK}",
            "--profiling=false",
        ]
