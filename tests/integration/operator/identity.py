"""A ServiceAccount with a token of its own, and rights in its namespace only."""

import json
from pathlib import Path
from typing import Any

from hack.cluster.kubectl import Kubectl


class Identity:
    """One ServiceAccount. Its kubeconfig's context has the namespace, as a pod's service account has."""

    def __init__(self, kubectl: Kubectl, namespace: str, directory: Path, name: str = "tenant") -> None:
        self.kubectl = kubectl
        self.namespace = namespace
        self.name = name
        self.kubeconfig = directory / f"{name}.kubeconfig"
        kubectl("create", "serviceaccount", name, "-n", namespace)
        self.sign_in()

    def sign_in(self, server: str = "", seconds: int = 3600) -> None:
        """Write the kubeconfig with a new token."""
        token = self.kubectl("create", "token", self.name, "-n", self.namespace, f"--duration={seconds}s").stdout
        config = json.loads(self.kubectl.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token.strip()}
        config["contexts"][0]["context"]["namespace"] = self.namespace
        if server:
            config["clusters"][0]["cluster"] = {"server": server}
        self.kubeconfig.write_text(json.dumps(config))

    def allow(self, group: str, resource: str, *verbs: str) -> None:
        """Some verbs on one resource in the namespace."""
        self.grant(resource, [{"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}])

    def grant(self, name: str, rules: list[dict[str, Any]], namespace: str = "") -> None:
        """A Role with these rules in a namespace, by default its own."""
        metadata = {"name": f"{self.name}-{name}", "namespace": namespace or self.namespace}
        group = "rbac.authorization.k8s.io"
        role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
        binding = {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}],
        }
        self.kubectl.apply([role, binding])

    def forbid(self, name: str) -> None:
        """Take back what was granted under a name."""
        self.kubectl("delete", "rolebinding", f"{self.name}-{name}", "-n", self.namespace)
