"""What the overlay of a pod may not change, and why.

These are the parts of a pod that have a field of their own, or that probes, routing and selectors depend on.
"""

from epd_operator.api import names

POD_FIELDS = {
    "restartPolicy": "pods of a Deployment always restart",
    "enableServiceLinks": "variables named after Services would reach vLLM as settings",
    "hostNetwork": "ports of instances on one node would collide, and the NetworkPolicy would not hold",
    "terminationGracePeriodSeconds": "drainTimeoutSeconds decides it",
}
"""Of the pod's spec."""
CONTAINER_FIELDS = {
    "image": "the image has a field of its own, which the revision depends on",
    "imagePullPolicy": "the pull policy has a field of its own",
    "command": "the operator writes the command line; args adds to it",
    "args": "the operator writes the command line; args of the role adds to it",
    "resources": "resources of the role is its field; devices follow from parallelism",
}
"""Of the container that the operator makes: `engine`, or `proxy`."""
LABELS = (names.LABEL_NAME, names.LABEL_INSTANCE, names.LABEL_COMPONENT, names.LABEL_MANAGED_BY)
DOMAIN = "epd.dev/"


def reserved(key: str) -> bool:
    """Whether a label or annotation is the operator's own."""
    return key in LABELS or key.startswith(DOMAIN)
