"""Kubeconfig files of the cluster's identities."""

import base64
import json
from pathlib import Path

from hack.cluster.pki import CA
from hack.cluster.settings import Layout, write_if_changed

CONTEXT = "epd-local"
USERS = ("admin", "controller-manager", "scheduler", "kubelet", "proxy")


def write_kubeconfigs(layout: Layout, server: str) -> None:
    """One self-contained file a user, readable by its owner only."""
    for user in USERS:
        text = json.dumps(_kubeconfig(layout.pki, server, user), indent=1)
        write_if_changed(layout.kubeconfig(user), text).chmod(0o600)


def _kubeconfig(pki: Path, server: str, user: str) -> dict[str, object]:
    cluster = {"server": server, "certificate-authority-data": _encoded(pki / f"{CA}.crt")}
    identity = {
        "client-certificate-data": _encoded(pki / f"{user}.crt"),
        "client-key-data": _encoded(pki / f"{user}.key"),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": user}}],
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": user, "user": identity}],
    }


def _encoded(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
