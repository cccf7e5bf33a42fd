"""CustomResourceDefinitions, made from the types: structural schemas as the API server wants them."""

import ast
import copy
import inspect
import textwrap
from itertools import pairwise
from typing import Any, cast

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from epd_operator.api.deployment import GROUP, KIND, PLURAL, VERSION, EPDDeployment
from epd_operator.api.role_scale import SCALE_KIND, SCALE_PLURAL, EPDRoleScale, EPDRoleScaleStatus
from epd_operator.api.status import Status

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
        EPDDeployment, Status, KIND, PLURAL, short_names=["epd"], columns=[*columns, _AGE], subresources={"status": {}}
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
        EPDRoleScaleStatus,
        SCALE_KIND,
        SCALE_PLURAL,
        short_names=["epdscale"],
        columns=scale_columns,
        subresources=subresources,
    )
    return [deployment, scale]


def _definition(
    model: type[BaseModel],
    status: type[BaseModel],
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
        "schema": {"openAPIV3Schema": structural_schema(model, status)},
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
                **({"categories": ["all"]} if kind == KIND else {}),
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def structural_schema(model: type[BaseModel], status: type[BaseModel]) -> dict[str, Any]:
    """A model's JSON schema in the structural form that the API server demands.

    https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
    """
    schema = _structural_of(model)
    properties = schema["properties"]
    properties["apiVersion"] = {"type": "string"}
    properties["kind"] = {"type": "string"}
    properties["metadata"] = {"type": "object"}
    properties["status"] = _structural_of(status)
    schema["required"] = ["spec"]
    return schema


class _Documented(GenerateJsonSchema):
    """Describes each field by the docstring below it in the source, which only this generation needs."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        result = super().model_schema(schema)
        model = schema["cls"]
        texts = _docstrings(model)
        for name, field in model.model_fields.items():
            if name in texts:
                result["properties"][field.alias or name]["description"] = texts[name]
        return result


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """Field name -> the text below it."""
    body = cast("ast.ClassDef", ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]).body
    texts = {}
    for statement, after in pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            match after:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    texts[statement.target.id] = " ".join(text.split())
    return texts


def _structural_of(model: type[BaseModel]) -> dict[str, Any]:
    raw = model.model_json_schema(by_alias=True, mode="validation", schema_generator=_Documented)
    return _structural(raw, raw.get("$defs", {}))


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
