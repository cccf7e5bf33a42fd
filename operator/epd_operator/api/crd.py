"""CustomResourceDefinitions, made from the types: structural schemas as the API server wants them."""

import copy
from typing import Any

from pydantic import BaseModel

from epd_operator.api.deployment import GROUP, KIND, PLURAL, VERSION, EPDDeployment
from epd_operator.api.role_scale import SCALE_KIND, SCALE_PLURAL, EPDRoleScale

_COLUMNS = (
    ("Topology", ".status.topology", "Roles present", 0),
    ("Ready", '.status.conditions[?(@.type=="Ready")].status', "Whether everything is as the spec asks", 0),
    ("Encode", ".status.roles.encode.summary", "Encoders ready/desired", 0),
    ("Prefill", ".status.roles.prefill.summary", "Prefill instances ready/desired", 0),
    ("Decode", ".status.roles.decode.summary", "Decode instances ready/desired", 0),
    ("Reason", '.status.conditions[?(@.type=="Ready")].reason', "Why Ready has its status", 0),
    ("URL", ".status.url", "Base URL of the API inside the cluster", 1),
    ("Revision", ".status.currentRevision", "Revision that serves", 1),
)
_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def custom_resource_definitions() -> list[dict[str, Any]]:
    """Both CustomResourceDefinitions, in apply order."""
    columns = [
        {"name": name, "type": "string", "jsonPath": path, "description": text, "priority": priority}
        for name, path, text, priority in _COLUMNS
    ]
    deployment = _definition(
        EPDDeployment, KIND, PLURAL, short_names=["epd"], columns=[*columns, _AGE], subresources={"status": {}}
    )
    scale_columns = [
        {"name": "Deployment", "type": "string", "jsonPath": ".spec.deployment"},
        {"name": "Role", "type": "string", "jsonPath": ".spec.role"},
        {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas"},
        {"name": "Current", "type": "integer", "jsonPath": ".status.replicas"},
        _AGE,
    ]
    paths = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    subresources: dict[str, Any] = {"status": {}, "scale": paths}
    scale = _definition(
        EPDRoleScale,
        SCALE_KIND,
        SCALE_PLURAL,
        short_names=["epdscale"],
        columns=scale_columns,
        subresources=subresources,
    )
    return [deployment, scale]


def _definition(
    model: type[BaseModel],
    kind: str,
    plural: str,
    *,
    short_names: list[str],
    columns: list[dict[str, Any]],
    subresources: dict[str, Any],
) -> dict[str, Any]:
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": columns,
        "schema": {"openAPIV3Schema": structural_schema(model)},
        "subresources": subresources,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": short_names,
                "categories": ["epd"] if kind != KIND else ["all", "epd"],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def structural_schema(model: type[BaseModel]) -> dict[str, Any]:
    """A model's JSON schema in the structural form that the API server demands.

    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
    """
    raw = model.model_json_schema(by_alias=True, mode="validation")
    schema = _structural(raw, raw.get("$defs", {}))
    properties = schema["properties"]
    properties["apiVersion"] = {"type": "string"}
    properties["kind"] = {"type": "string"}
    properties["metadata"] = {"type": "object"}
    schema["required"] = ["spec"]
    return schema


def _structural(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    node = _inlined(node, definitions)
    result: dict[str, Any] = {
        key: value
        for key, value in node.items()
        if key not in ("$defs", "title", "default", "additionalProperties", "properties", "items", "anyOf", "const")
    }
    if "description" in result:
        result["description"] = " ".join(result["description"].split())
    if "anyOf" in node:  # only quantities and int-or-percent are left: the API server knows them by the extension
        result["anyOf"] = node["anyOf"]
    if "const" in node:
        result["enum"] = [node["const"]]
    if "properties" in node:
        result["properties"] = {name: _structural(child, definitions) for name, child in node["properties"].items()}
    elif isinstance(node.get("additionalProperties"), dict):
        result["additionalProperties"] = _structural(node["additionalProperties"], definitions)
    if "items" in node:
        result["items"] = _structural(node["items"], definitions)
    return result


def _inlined(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """Replace references and `T | None` by the schema itself; what stands beside them wins."""
    node = dict(node)
    while True:
        if "$ref" in node:
            target = copy.deepcopy(definitions[node.pop("$ref").rsplit("/", 1)[-1]])
        elif "anyOf" in node and "x-kubernetes-int-or-string" not in node:
            options = [option for option in node.pop("anyOf") if option != {"type": "null"}]
            if len(options) != 1:
                raise ValueError(f"no structural form for a choice between types: {options}")
            target = dict(options[0])
        else:
            return node
        node = {**target, **node}
