"""Write the table of a pod's fields that templates are checked with, from an API server's own OpenAPI.

    python -m hack.pod_schema

A control plane of the pinned Kubernetes release is started for it.
"""

import json
import sys
from typing import Any

from epd_operator.api.podspec import TABLE
from hack.cluster.errors import ClusterError, MissingPrerequisite
from hack.cluster.kubectl import Kubectl
from hack.cluster.local import temporary_control_plane

PREFIX = "#/components/schemas/"
ROOT = "io.k8s.api.core.v1.PodSpec"
SCALARS = {"Quantity": "quantity", "IntOrString": "int-or-string", "Time": "string", "FieldsV1": "object"}


def table(kubectl: Kubectl) -> str:
    """The table as JSON with one type a line, made from the server that `kubectl` reaches."""
    schemas = json.loads(kubectl("get", "--raw=/openapi/v3/api/v1").stdout)["components"]["schemas"]
    version = json.loads(kubectl("get", "--raw=/version").stdout)
    types: dict[str, dict[str, str]] = {}
    required: dict[str, list[str]] = {}
    wanted = [ROOT]
    while wanted:
        name = wanted.pop()
        if _short(name) in types:
            continue
        properties = schemas[name].get("properties", {})
        types[_short(name)] = {field: _type(schema, wanted) for field, schema in properties.items()}
        if needed := schemas[name].get("required"):
            required[_short(name)] = needed
    release = f"{version['major']}.{version['minor'].rstrip('+')}"
    parts = [f'"kubernetes": {json.dumps(release)}', _section("types", types), _section("required", required)]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _section(name: str, entries: dict[str, Any]) -> str:
    lines = [f"  {json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in sorted(entries.items())]
    return f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}"


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _type(schema: dict[str, Any], wanted: list[str]) -> str:
    """A field's type: a scalar's name, a type of the table, `[item]` or `{value}`; types it names become wanted."""
    [reference] = [part["$ref"] for part in (schema, *schema.get("allOf", ())) if "$ref" in part] or [None]
    if reference is not None:
        name = reference.removeprefix(PREFIX)
        if _short(name) in SCALARS:
            return SCALARS[_short(name)]
        wanted.append(name)
        return _short(name)
    if schema["type"] == "array":
        return f"[{_type(schema['items'], wanted)}]"
    if schema["type"] == "object" and "additionalProperties" in schema:
        return f"{{{_type(schema['additionalProperties'], wanted)}}}"
    return str(schema["type"])


def main() -> int:
    try:
        with temporary_control_plane() as local:
            TABLE.write_text(table(local.kubectl), encoding="utf-8")
    except (MissingPrerequisite, ClusterError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(TABLE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
