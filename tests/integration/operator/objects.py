"""Comparing objects without what the server sets."""

import copy
import json

from epd_operator.api.names import ANNOTATION_DESIRED
from hack.cluster.kubectl import Object

KINDS = (
    "serviceaccounts",
    "rolebindings",
    "configmaps",
    "networkpolicies",
    "services",
    "poddisruptionbudgets",
    "deployments",
    "cronjobs",
    "epdrolescales",
)
"""Kinds that are rendered."""
_SET_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences")
_SET_BY_CONTROLLERS = ("deployment.kubernetes.io/revision", ANNOTATION_DESIRED)
"""By the Deployment controller, and by this project's beside replicas."""


def bare(body: Object) -> Object:
    """An object as it was asked for, defaults included: without identity, owner, status and addresses."""
    body = copy.deepcopy(body)
    metadata = body["metadata"]
    for field in _SET_BY_SERVER:
        metadata.pop(field, None)
    annotations = metadata.get("annotations", {})
    for name in _SET_BY_CONTROLLERS:
        annotations.pop(name, None)
    if not annotations:
        metadata.pop("annotations", None)
    body.pop("status", None)
    if body["kind"] == "Deployment":
        body["spec"].pop("minReadySeconds", None)  # not before an instance replaces another
    if body["kind"] == "Service":
        for field in ("clusterIP", "clusterIPs"):
            if body["spec"].get(field) not in ("None", ["None"]):
                body["spec"].pop(field, None)
    return body


def by_key(bodies: list[Object]) -> dict[tuple[str, str], Object]:
    """Bare objects by kind and name."""
    return {(body["kind"], body["metadata"]["name"]): bare(body) for body in bodies}


def json_documents(text: str) -> list[Object]:
    """The objects that kubectl printed, one document after the other."""
    decoder, position, found = json.JSONDecoder(), 0, []
    while position < len(text):
        body, end = decoder.raw_decode(text, position)
        found.append(body)
        position = end + len(text[end:]) - len(text[end:].lstrip())
    return [item for body in found for item in (body["items"] if body["kind"] == "List" else [body])]
