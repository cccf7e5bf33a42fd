"""What a node changes on the machine outside its directory, and how that is undone."""

import contextlib
import json
import os
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import IPv4Network
from pathlib import Path

from hack.cluster.command import run
from hack.cluster.programs import Programs
from hack.cluster.settings import Layout, Settings

# What the kubelet and the network plugins write.
SYSCTLS = (
    "net/ipv4/ip_forward",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
PROC = Path("/proc/sys")
CONTAINER_LOGS = Path("/var/log/containers")
PORT_CHAINS = ("CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-MASQ", "CNI-HOSTPORT-SETMARK")
PORT_RULES = (
    ("PREROUTING", "-m", "addrtype", "--dst-type", "LOCAL", "-j", "CNI-HOSTPORT-DNAT"),
    ("OUTPUT", "-m", "addrtype", "--dst-type", "LOCAL", "-j", "CNI-HOSTPORT-DNAT"),
    ("POSTROUTING", "-m", "comment", "--comment", "CNI portfwd requiring masquerade", "-j", "CNI-HOSTPORT-MASQ"),
)


@dataclass(frozen=True)
class Host:
    """The machine, as one cluster's node."""

    settings: Settings
    layout: Layout

    @property
    def prepared(self) -> bool:
        """Whether there is something to undo."""
        return self._saved.exists()

    @property
    def _saved(self) -> Path:
        return self.layout.directory / "sysctls.json"

    def prepare(self) -> None:
        """Make the bridge and forward packets; repeating it does no harm. Raises ClusterError."""
        if not self.prepared:
            self._saved.parent.mkdir(parents=True, exist_ok=True)
            present = {name: (PROC / name).read_text().strip() for name in SYSCTLS if (PROC / name).exists()}
            self._saved.write_text(json.dumps(present))
        (PROC / "net/ipv4/ip_forward").write_text("1")
        filtering = PROC / "net/bridge/bridge-nf-call-iptables"
        if filtering.exists() and filtering.read_text().strip() != "1":
            filtering.write_text("1")  # replies between two pods of one bridge must pass connection tracking
        self._bridge()

    def undo(self, programs: Programs) -> None:
        """Remove mounts, packet rules, the bridge and control groups, and put the kernel's settings back."""
        for mount in self._mounts():
            run("umount", mount)
        for family in ("ip", "ip6"):
            run("nft", "delete", "table", family, "kube-proxy", check=False)
        run(programs.localcluster, "kube-proxy", "--cleanup", check=False)
        self._remove_port_rules()
        run("ip", "link", "delete", self.settings.bridge, check=False)
        self._remove_control_groups()
        self._remove_log_links()
        if self.prepared:
            for name, value in json.loads(self._saved.read_text()).items():
                (PROC / name).write_text(value)
            self._saved.unlink()

    def _bridge(self) -> None:
        name, address = self.settings.bridge, self.settings.bridge_address
        if run("ip", "link", "show", name, check=False).returncode:
            # A fixed hardware address; a bridge without one takes over and drops its ports' as pods come and go.
            digits = sha256(self.settings.pod_cidr.encode()).hexdigest()
            hardware = ":".join(["02", *(digits[index : index + 2] for index in range(0, 10, 2))])
            run("ip", "link", "add", name, "address", hardware, "type", "bridge")
        present = json.loads(run("ip", "-json", "address", "show", name).stdout)[0]["addr_info"]
        if not any(entry["local"] == address for entry in present):
            length = IPv4Network(self.settings.pod_cidr).prefixlen
            run("ip", "address", "add", f"{address}/{length}", "dev", name)
        run("ip", "link", "set", name, "up")

    def _mounts(self) -> list[str]:
        """Mount points below the cluster's directory, inner ones first."""
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        points = [line.split()[4].encode().decode("unicode_escape") for line in lines]
        return sorted(
            (point for point in points if point.startswith(f"{self.layout.directory}/")), key=len, reverse=True
        )

    @staticmethod
    def _remove_port_rules() -> None:
        """The chains that the port mapping plugin keeps once a pod had a host port."""
        for rule in PORT_RULES:
            run("iptables", "-t", "nat", "-D", *rule, check=False)
        for option in ("-F", "-X"):
            for chain in PORT_CHAINS:
                run("iptables", "-t", "nat", option, chain, check=False)

    @staticmethod
    def _remove_control_groups() -> None:
        for root in (*Path("/sys/fs/cgroup").glob("*/kubepods"), Path("/sys/fs/cgroup/kubepods")):
            for directory, _, _ in os.walk(root, topdown=False):
                with contextlib.suppress(OSError):  # a process of the pod is still ending; an empty group does no harm
                    Path(directory).rmdir()

    def _remove_log_links(self) -> None:
        """Links at a place that the kubelet does not let one choose."""
        for link in CONTAINER_LOGS.glob("*.log"):
            if link.is_symlink() and str(link.readlink()).startswith(f"{self.layout.directory}/"):
                link.unlink()
