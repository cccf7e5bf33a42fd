"""The node's container runtime: a containerd of its own, beside any that the machine runs."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.command import run
from hack.cluster.daemons import Daemons
from hack.cluster.images import write_image
from hack.cluster.programs import Programs, coredns_version
from hack.cluster.settings import Layout, Settings, write_if_changed

NAME = "containerd"
PLUGINS = Path("/usr/lib/cni")
PAUSE_IMAGE = "localhost/pause:1"
UNUSED = ("internal.v1.restart", *(f"snapshotter.v1.{kind}" for kind in ("btrfs", "zfs", "devmapper", "aufs")))


def coredns_image() -> str:
    """The name of the image that `import_system_images` makes of the built name server."""
    return f"localhost/coredns:{coredns_version()}"


@dataclass(frozen=True)
class Containerd:
    """The runtime of one cluster directory."""

    settings: Settings
    layout: Layout
    daemons: Daemons

    def start(self, timeout: float) -> None:
        """Start it unless it runs, and wait until it answers. Raises ClusterError."""
        write_if_changed(self.layout.configuration / "cni" / "10-epd.conflist", json.dumps(self._network(), indent=1))
        file = write_if_changed(self.layout.configuration / "containerd.toml", self._configuration())
        self.daemons.ensure(NAME, [NAME, "--config", file], [file])
        self.daemons.wait(NAME, "the container runtime answers", lambda: bool(self.ctr("version")), timeout)

    def stop(self) -> None:
        """End it. Containers outlive it."""
        self.daemons.stop(NAME)

    def ctr(self, *args: str | Path) -> str:
        """Run containerd's own client on Kubernetes' images and containers. Raises ClusterError."""
        socket = self.layout.runtime_socket
        return run("ctr", "--address", socket, "--namespace", "k8s.io", *args).stdout

    def load(self, archive: Path) -> str:
        """Import the images of a docker-archive or oci-archive; returns what the runtime says. Raises ClusterError."""
        return self.ctr("images", "import", archive.resolve()).strip()

    def has(self, reference: str) -> bool:
        """Whether there is an image of this full name. Raises ClusterError."""
        return reference in self.ctr("images", "list", "-q").split()

    def forget(self, repository: str, kept: Collection[str]) -> None:
        """Remove the images of a name but some, and those that containers are of. Raises ClusterError."""
        used = {line.split()[1] for line in self.ctr("containers", "list").splitlines()[1:]}
        entries = [line.split() for line in self.ctr("images", "list").splitlines()[1:]]
        found = {name: digest for name, _, digest, *_ in entries}
        spared = {digest for name, digest in found.items() if name in used or name in kept}
        stale = {digest for name, digest in found.items() if name.startswith(f"{repository}:")} - spared
        # An image has several names, among them its own digest; it goes with the last.
        if names := [name for name, digest in found.items() if digest in stale]:
            self.ctr("images", "remove", *names)

    def import_system_images(self, programs: Programs) -> None:
        """Make images of the built pause program and name server, unless these builds are there already."""
        present = self.ctr("images", "list", "-q").split()
        for name, program in ((PAUSE_IMAGE, programs.pause), (coredns_image(), programs.coredns)):
            stamp = self.layout.directory / "imported" / program.name
            if name in present and stamp.exists() and stamp.read_text() == str(program):
                continue
            archive = self.layout.directory / "imported" / f"{program.name}.tar"
            write_image(archive, name, {f"/{program.name}": program}, [f"/{program.name}"])
            self.load(archive)
            archive.unlink()
            stamp.write_text(str(program))

    def _configuration(self) -> str:
        root = self.layout.directory / "containerd"
        cri, runc = "io.containerd.grpc.v1.cri", "io.containerd.runc.v2"
        unused = json.dumps([f"io.containerd.{plugin}" for plugin in UNUSED])
        return f"""version = 2
root = "{root}/root"
state = "{root}/state"
oom_score = 0  # a negative one is refused without CAP_SYS_RESOURCE
disabled_plugins = {unused}
[grpc]
  address = "{self.layout.runtime_socket}"
[ttrpc]
  address = "{self.layout.runtime_socket}.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
  path = "{root}/opt"
[plugins."{cri}"]
  sandbox_image = "{PAUSE_IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true  # the kubelet asks for -998, which is refused without CAP_SYS_RESOURCE
  stream_server_address = "127.0.0.1"
  [plugins."{cri}".cni]
    bin_dir = "{PLUGINS}"
    conf_dir = "{self.layout.configuration}/cni"
  [plugins."{cri}".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."{cri}".containerd.runtimes.runc]
      runtime_type = "{runc}"
      [plugins."{cri}".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""

    def _network(self) -> dict[str, object]:
        """A bridge; each pod has an address of the range, and routes everything through the node."""
        addresses = {
            "type": "host-local",
            "dataDir": str(self.layout.directory / "cni-addresses"),
            "ranges": [[{"subnet": self.settings.pod_cidr, "gateway": self.settings.bridge_address}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        bridge = {
            "type": "bridge",
            "bridge": self.settings.bridge,
            "isGateway": True,
            "hairpinMode": True,  # a pod may reach itself through its Service
            "ipMasq": False,  # pods do not reach beyond the machine
            "ipam": addresses,
        }
        ports = {"type": "portmap", "capabilities": {"portMappings": True}}
        return {"cniVersion": "1.0.0", "name": "epd", "plugins": [bridge, ports]}
