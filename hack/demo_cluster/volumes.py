"""Claims that any pod of a namespace can use: of the cluster's storage class, or of folders on the local node."""

import os
import shutil
from pathlib import Path

from hack.cluster.kubectl import Kubectl, Object
from hack.cluster.provider import Local, Provider

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
USER = 1000
"""As whom all pods of an EPDDeployment run."""


class Volumes:
    """Makes claims."""

    def __init__(self, provider: Provider, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        self._folder = provider.directory / "volumes" if isinstance(provider, Local) else None

    def claim(self, namespace: str, name: str, size: str = "2Gi") -> None:
        """Make a claim, and on the local node the volume behind it, unless it is there. Raises ClusterError."""
        if self._kubectl.exists("persistentvolumeclaim", name, f"--namespace={namespace}"):
            return
        objects = [_claim(name, size, shared=True, volume=self._volume_name(namespace, name))]
        if self._folder is None:
            # Most clusters' default class has volumes for one node; all pods of a demonstration can be there.
            objects = [_claim(name, size, shared=False, volume=None)]
        else:
            self._kubectl.apply([self._volume(namespace, name, size)])
        self._kubectl.apply(objects, namespace)

    def remove(self, namespace: str) -> None:
        """Remove all claims of a namespace, the volumes behind them and what is in them. Pods must not use them."""
        self._kubectl("delete", "persistentvolumeclaims", "--all", f"--namespace={namespace}", "--wait=false")
        if self._folder is None or not self._folder.is_dir():
            return
        for path in self._folder.glob(f"{namespace}.*"):
            self._kubectl("delete", "persistentvolume", path.name, "--ignore-not-found", "--wait=false")
            shutil.rmtree(path)

    def path(self, namespace: str, name: str) -> Path | None:
        """Where the content of a claim lies on this machine; None where it does not."""
        return self._folder / self._volume_name(namespace, name) if self._folder else None

    @staticmethod
    def _volume_name(namespace: str, name: str) -> str:
        return f"{namespace}.{name}"

    def _volume(self, namespace: str, name: str, size: str) -> Object:
        assert self._folder is not None
        path = self._folder / self._volume_name(namespace, name)
        path.mkdir(parents=True, exist_ok=True)
        os.chown(path, USER, USER)
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name},
            "hostPath": {"path": str(path), "type": "Directory"},
        }
        metadata = {"name": self._volume_name(namespace, name)}
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def _claim(name: str, size: str, *, shared: bool, volume: str | None) -> Object:
    spec: Object = {
        "accessModes": ["ReadWriteMany" if shared else "ReadWriteOnce"],
        "resources": {"requests": {"storage": size}},
    }
    if volume:
        spec |= {"storageClassName": "", "volumeName": volume}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
