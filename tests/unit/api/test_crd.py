"""The CustomResourceDefinitions: what the API server demands, and that they say what the types say."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from epd_operator.api.crd import custom_resource_definitions
from tests.unit.objects import yaml

CRDS = Path(__file__).parents[3] / "crds"
DEPLOYMENTS, SCALES = custom_resource_definitions()
ALLOWED = {
    "type",
    "description",
    "properties",
    "items",
    "required",
    "enum",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "anyOf",
    "additionalProperties",
    "x-kubernetes-validations",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
}


def schema(definition: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def nodes(node: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside a schema, with its path."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from nodes(node["additionalProperties"], f"{path}{{}}")


ALL = [(path, node) for crd in (DEPLOYMENTS, SCALES) for path, node in nodes(schema(crd))]


@pytest.mark.parametrize("definition", [DEPLOYMENTS, SCALES], ids=["deployments", "scales"])
def test_what_is_committed_is_what_is_generated(definition: dict[str, Any]) -> None:
    committed = (CRDS / f"{definition['metadata']['name'].partition('.')[0]}.epd.dev.yaml").read_text()
    assert yaml(committed) == json.loads(json.dumps(definition))
    assert len(committed.encode()) < 200_000


def test_every_field_has_a_type_and_only_what_a_structural_schema_may_have() -> None:
    for path, node in ALL:
        assert node.keys() <= ALLOWED, path
        assert ("type" in node) != ("x-kubernetes-int-or-string" in node), path


def test_every_field_is_documented() -> None:
    for path, node in ALL:
        if re.search(r"\.spec\.|\.status\.", path) and not path.endswith(("[]", "{}")):
            assert node.get("description"), path
            assert not node["description"].isspace()


def test_a_list_that_is_a_map_has_its_keys_required() -> None:
    for path, node in ALL:
        for key in node.get("x-kubernetes-list-map-keys", ()):
            assert key in node["items"]["required"], path


def test_open_objects_are_the_borrowed_ones() -> None:
    opened = {
        path.rpartition(".")[2]
        for path, node in ALL
        if node.get("x-kubernetes-preserve-unknown-fields") and ".spec" in path
    }
    assert opened == {"extraConfig", "spec", "valueFrom", "claims[]"}


def test_names_columns_and_subresources() -> None:
    spec = DEPLOYMENTS["spec"]
    assert spec["names"]["shortNames"] == ["epd"]
    (version,) = spec["versions"]
    columns = [column["name"] for column in version["additionalPrinterColumns"] if not column.get("priority")]
    assert columns == ["Topology", "Ready", "Encode", "Prefill", "Decode", "Reason", "Age"]
    assert version["subresources"] == {"status": {}}
    (scale,) = SCALES["spec"]["versions"]
    assert scale["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }


def test_paths_of_columns_exist() -> None:
    for crd in (DEPLOYMENTS, SCALES):
        known = {path for path, _ in nodes(schema(crd))} | {".metadata.creationTimestamp"}
        for column in crd["spec"]["versions"][0]["additionalPrinterColumns"]:
            plain = re.sub(r"\[\?.*?\]", "[]", column["jsonPath"])
            assert plain in known, column


def test_replicas_and_scaling_exclude_each_other_there_too() -> None:
    for role in ("encode", "prefill", "decode"):
        rules = schema(DEPLOYMENTS)["properties"]["spec"]["properties"][role]["x-kubernetes-validations"]
        assert [rule["rule"] for rule in rules] == ["!(has(self.replicas) && has(self.scaling))"]


def test_what_is_required() -> None:
    spec = schema(DEPLOYMENTS)["properties"]["spec"]
    assert set(spec["required"]) == {"model", "engine", "decode"}
    assert schema(DEPLOYMENTS)["required"] == ["spec"]
