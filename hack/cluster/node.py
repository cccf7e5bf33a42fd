"""The machine as the cluster's one node: container runtime, kubelet, kube-proxy, name server. Needs root."""

import json
import os
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hack.cluster.command import ENVIRONMENT, run
from hack.cluster.containerd import PLUGINS, Containerd, coredns_image
from hack.cluster.controlplane import LOOPBACK
from hack.cluster.daemons import Daemons
from hack.cluster.errors import ClusterError, MissingPrerequisite
from hack.cluster.health import answers
from hack.cluster.host import Host
from hack.cluster.kubectl import Kubectl
from hack.cluster.pki import CA
from hack.cluster.ports import is_free
from hack.cluster.programs import Programs
from hack.cluster.settings import Layout, Settings, write_if_changed

GPU = "nvidia.com/gpu"
NEEDED = ("containerd", "ctr", "runc", "nft", "iptables", "ip", "mount", "umount")
PACKAGES = "containerd runc containernetworking-plugins nftables iptables iproute2 conntrack socat"
MANIFESTS = Path(__file__).parent / "manifests"
SOCKET_LENGTH = 90  # of the 107 bytes that a socket's path may have; the runtime appends to it


def require_node_programs(layout: Layout) -> None:
    """Raises MissingPrerequisite: this machine cannot be a node, and what it lacks."""
    if os.geteuid():
        raise MissingPrerequisite("a node needs root; the control plane alone does not (`up --control-plane`)")
    missing = [name for name in NEEDED if not shutil.which(name, path=ENVIRONMENT["PATH"])]
    if not (PLUGINS / "bridge").exists():
        missing.append(str(PLUGINS / "bridge"))
    if missing:
        raise MissingPrerequisite(f"a node needs {', '.join(missing)}; on Debian: apt-get install {PACKAGES}")
    if len(str(layout.runtime_socket)) > SOCKET_LENGTH:
        raise ClusterError(f"{layout.runtime_socket}: too long for a socket; put the cluster into a shorter path")


@dataclass(frozen=True)
class Node:
    """The node of one cluster directory, whose control plane runs."""

    settings: Settings
    layout: Layout
    programs: Programs
    daemons: Daemons
    kubectl: Kubectl

    @property
    def containerd(self) -> Containerd:
        """Its container runtime."""
        return Containerd(self.settings, self.layout, self.daemons)

    @property
    def host(self) -> Host:
        """The machine."""
        return Host(self.settings, self.layout)

    def start(self, timeout: float) -> None:
        """Start what does not run, and wait until pods can run and resolve names. Raises ClusterError."""
        self._require_ports()
        self.containerd.start(timeout)
        self.containerd.import_system_images(self.programs)
        self._start_kubelet(timeout)
        self._start_proxy(timeout)
        if self.settings.fake_gpus:
            self.set_gpus(self.settings.fake_gpus)
        self._start_name_server(timeout)

    def stop(self) -> None:
        """Remove all pods and end the node's processes. Data stays."""
        self.daemons.stop("kubelet")
        if self.host.prepared and (self.layout.directory / "containerd").exists():
            # Pods outlive the runtime: it has to run for them to be removed, also after a crash.
            self.containerd.start(timeout=30)
            run(self.programs.localcluster, "remove-pods", f"unix://{self.layout.runtime_socket}")
        self.containerd.stop()
        self.daemons.stop("kube-proxy")

    def set_gpus(self, count: int) -> None:
        """Let the node offer GPUs that it does not have: the scheduler counts them, and no one looks further."""
        # The kubelet keeps what it finds in the capacity; the scheduler reads what is allocatable.
        amounts = {"capacity": {GPU: str(count)}, "allocatable": {GPU: str(count)}}
        patch = json.dumps({"status": amounts})
        self.kubectl("patch", "node", self.settings.node_name, "--subresource=status", "--type=merge", f"-p={patch}")

    def _require_ports(self) -> None:
        ports, address = self.settings.ports, self.settings.bridge_address
        needed = [
            ("kubelet", LOOPBACK, ports.kubelet_health),
            ("kubelet", address, ports.kubelet),
            ("kube-proxy", LOOPBACK, ports.proxy_health),
            ("kube-proxy", LOOPBACK, ports.proxy_metrics),
        ]
        for name, host, port in needed:
            if self.daemons.running(name) is None and not is_free(host, port):
                raise ClusterError(f"{name} needs {host}:{port}, where something listens; is another node up?")

    def _start_kubelet(self, timeout: float) -> None:
        name, directory = self.settings.node_name, self.layout.directory / "kubelet"
        file = self._write("kubelet.yaml", self._kubelet_configuration())
        kubeconfig = self.layout.kubeconfig("kubelet")
        argv: list[str | Path] = [
            self.programs.localcluster,
            "kubelet",
            f"--config={file}",
            f"--kubeconfig={kubeconfig}",
            f"--root-dir={directory}",
            f"--cert-dir={directory / 'pki'}",
            f"--hostname-override={name}",
            f"--node-ip={self.settings.bridge_address}",
        ]
        self.daemons.ensure("kubelet", argv, [file, kubeconfig])
        url = f"http://{LOOPBACK}:{self.settings.ports.kubelet_health}/healthz"
        self.daemons.wait("kubelet", "the kubelet is healthy", partial(answers, url), timeout)
        self.daemons.wait("kubelet", f"node {name} is Ready", self._is_ready, timeout)

    def _is_ready(self) -> bool:
        conditions = self.kubectl.json("get", "node", self.settings.node_name)["status"].get("conditions", [])
        return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

    def _start_proxy(self, timeout: float) -> None:
        kubeconfig = self.layout.kubeconfig("proxy")
        file = self._write("kube-proxy.yaml", self._proxy_configuration())
        argv: list[str | Path] = [self.programs.localcluster, "kube-proxy", f"--config={file}"]
        self.daemons.ensure("kube-proxy", argv, [file, kubeconfig])
        url = f"http://{LOOPBACK}:{self.settings.ports.proxy_health}/healthz"
        self.daemons.wait("kube-proxy", "kube-proxy is healthy", partial(answers, url), timeout)

    def _start_name_server(self, timeout: float) -> None:
        manifest = (MANIFESTS / "coredns.yaml").read_text()
        values = {"IMAGE": coredns_image(), "DNS_ADDRESS": self.settings.dns_address}
        for name, value in values.items():
            manifest = manifest.replace(f"@{name}@", value)
        self.kubectl.apply(manifest)
        self.kubectl("rollout", "status", "deployment/coredns", "-n", "kube-system", f"--timeout={timeout:g}s")

    def _write(self, name: str, configuration: dict[str, object]) -> Path:
        return write_if_changed(self.layout.configuration / name, json.dumps(configuration, indent=1))

    def _kubelet_configuration(self) -> dict[str, object]:
        ports, pki = self.settings.ports, self.layout.pki
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": self.settings.bridge_address,
            "port": ports.kubelet,
            "readOnlyPort": 0,
            "healthzBindAddress": LOOPBACK,
            "healthzPort": ports.kubelet_health,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(pki / f"{CA}.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(pki / "kubelet-server.crt"),
            "tlsPrivateKeyFile": str(pki / "kubelet-server.key"),
            "containerRuntimeEndpoint": f"unix://{self.layout.runtime_socket}",
            "cgroupDriver": "cgroupfs",  # there need be no systemd
            "failCgroupV1": False,  # 1.35 and later refuse it otherwise
            "oomScoreAdj": 0,  # the default -999 is refused without CAP_SYS_RESOURCE
            "makeIPTablesUtilChains": False,  # leave the machine's packet rules alone
            "clusterDNS": [self.settings.dns_address],
            "clusterDomain": "cluster.local",
            "podLogsDir": str(self.layout.directory / "pod-logs"),
            # Images are loaded by hand and could not be pulled again.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "serializeImagePulls": False,
            "maxPods": 100,
        }

    def _proxy_configuration(self) -> dict[str, object]:
        ports, keep = self.settings.ports, "0s"
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clusterCIDR": self.settings.pod_cidr,
            "hostnameOverride": self.settings.node_name,
            "clientConnection": {"kubeconfig": str(self.layout.kubeconfig("proxy"))},
            "healthzBindAddress": f"{LOOPBACK}:{ports.proxy_health}",
            "metricsBindAddress": f"{LOOPBACK}:{ports.proxy_metrics}",
            "nodePortAddresses": [f"{self.settings.bridge_address}/32"],
            # Leave the kernel's connection tracking settings alone.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": keep, "tcpCloseWaitTimeout": keep},
            "oomScoreAdj": 0,
        }
