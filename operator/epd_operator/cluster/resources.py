"""Kinds of object, and the paths that they have in the API."""

from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]
"""A Kubernetes object, as in JSON."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object in one version of the API."""

    group: str
    """Empty for the core group."""
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """As in objects: `apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection(self, namespace: str | None = None) -> str:
        """Path of all objects, or of those of a namespace."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inner = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{inner}/{self.plural}"

    def path(self, namespace: str | None, name: str, subresource: str = "") -> str:
        """Path of one object, or of a subresource of it."""
        return f"{self.collection(namespace)}/{name}{f'/{subresource}' if subresource else ''}"

    def __str__(self) -> str:
        """The kind, for messages and metrics."""
        return self.kind


CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
PODS = Resource("", "v1", "Pod", "pods")
SECRETS = Resource("", "v1", "Secret", "secrets")
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
SERVICES = Resource("", "v1", "Service", "services")
CONTROLLER_REVISIONS = Resource("apps", "v1", "ControllerRevision", "controllerrevisions")
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments")
CRON_JOBS = Resource("batch", "v1", "CronJob", "cronjobs")
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
EVENTS = Resource("events.k8s.io", "v1", "Event", "events")
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
VALIDATING_WEBHOOKS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)
