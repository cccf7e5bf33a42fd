"""The operator of these sources, installed in the cluster that `make cluster` brought up."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hack.cluster.kubectl import Kubectl
from hack.cluster.provider import Given, Provider
from hack.demo_cluster.helm import Release
from hack.images.builder import Builder, builder
from hack.images.catalog import OPERATOR, PROXY, Image

SYSTEM_NAMESPACE = "epd-system"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@dataclass(frozen=True)
class Installation:
    """A cluster, and how images get there."""

    provider: Provider
    kubectl: Kubectl
    builder: Builder

    @classmethod
    def on(cls, provider: Provider) -> "Installation":
        """On a cluster that is up. Raises ClusterError."""
        return cls(provider, provider.reach().kubectl, builder())

    @property
    def release(self) -> Release:
        """The operator's release."""
        return Release(self.kubectl, SYSTEM_NAMESPACE)

    def image(self, image: Image) -> str:
        """Build an image of these sources, put it on the nodes, and return its reference. Raises ClusterError."""
        reference = self.builder.ensure(image)
        if not isinstance(self.provider, Given):
            self.builder.load(reference, self.provider)
        return reference

    def install(self, values: Mapping[str, Any] | None = None) -> None:
        """Install the operator, or upgrade to the one of these sources, and wait for it. Raises ClusterError."""
        self.namespace(SYSTEM_NAMESPACE)
        self.release.install(self.values() | dict(values or {}))

    def values(self) -> dict[str, Any]:
        """The chart's values that name the images of these sources; the images are on the nodes then."""
        operator, proxy = (self.image(image).partition(":")[2] for image in (OPERATOR, PROXY))
        return {"image.tag": operator, "proxy.image.tag": proxy}

    def namespace(self, name: str) -> None:
        """Make a namespace that enforces restricted pod security, unless it is there. Raises ClusterError."""
        metadata = {"name": name, "labels": RESTRICTED}
        self.kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])
        self.kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=30s")
