"""What an overlay on a pod means: which lists merge by name, and what it may not change and why.

The protected parts of a pod have a field of their own, or probes, routing and selectors depend on them.
"""

from epd_operator.api import names

KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort", "protocol"),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "resourceClaims": ("name",),
    "claims": ("name",),
    "schedulingGates": ("name",),
    "sysctls": ("name",),
}
"""Lists of a pod whose items have a name, and the fields that make it (Kubernetes' patchMergeKey)."""
POD_FIELDS = {
    "restartPolicy": "pods of a Deployment always restart",
    "enableServiceLinks": "variables named after Services would reach vLLM as settings",
    "hostNetwork": "ports of instances on one node would collide, and the NetworkPolicy would not hold",
    "terminationGracePeriodSeconds": "drainTimeoutSeconds decides it",
}
"""Protected fields of the pod's spec."""
PROXY_FIELDS = {
    "serviceAccountName": "its own account is the one that may read EndpointSlices",
    "automountServiceAccountToken": "it reads EndpointSlices with its token",
}
"""More of them for the proxy's pod."""
CONTAINER_FIELDS = {
    "image": "the image has a field of its own",
    "imagePullPolicy": "the pull policy has a field of its own",
    "command": "the operator writes the command line, and args has a field of its own",
    "args": "the operator writes the command line, and args has a field of its own",
    "resources": "resources has a field of its own, and devices follow from parallelism",
}
"""Protected fields of the container that the operator makes."""
ENGINE = "engine"
"""Name of that container in an engine's pod."""
LABELS = (names.LABEL_NAME, names.LABEL_INSTANCE, names.LABEL_COMPONENT, names.LABEL_MANAGED_BY)
DOMAIN = "epd.dev/"


def reserved(key: str) -> bool:
    """Whether a label or annotation is the operator's own."""
    return key in LABELS or key.startswith(DOMAIN)


def protected_fields(container: str) -> dict[str, str]:
    """Protected fields of the pod whose main container is `container`, and why each is."""
    return POD_FIELDS | (PROXY_FIELDS if container == names.PROXY else {})
