"""Write docs/api.md from the CustomResourceDefinitions: every field with its type and its description.

python hack/api_reference.py
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epd_operator.api.crd import custom_resource_definitions

TARGET = Path(__file__).resolve().parent.parent / "docs" / "api.md"
INTRODUCTION = """\
# API

Made by `make docs` from the types in `operator/epd_operator/api`; do not edit. `kubectl explain epd.spec` prints the
same. Sizes are Kubernetes quantities, durations whole seconds. Fields without a stated default are unset.
"""


def reference() -> str:
    """The whole page."""
    return "\n".join([INTRODUCTION, *(line for crd in custom_resource_definitions() for line in _kind(crd))])


def _kind(crd: dict[str, Any]) -> Iterator[str]:
    version = crd["spec"]["versions"][0]
    schema = version["schema"]["openAPIV3Schema"]
    yield f"## {crd['spec']['names']['kind']}\n"
    yield f"{schema['description']}\n"
    for part in ("spec", "status"):
        yield f"### {part}\n"
        yield "| field | type | |"
        yield "|---|---|---|"
        yield from _fields(schema["properties"][part], part)
        yield ""


def _fields(schema: dict[str, Any], path: str) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        place = f"{path}.{name}"
        mark = ", required" if name in required else ""
        yield f"| `{place}` | {_type(field)}{mark} | {field.get('description', '').replace('|', chr(92) + '|')} |"
        inner = field.get("items", field)
        if "properties" in inner and name not in ("prefill", "decode"):
            yield from _fields(inner, f"{place}[]" if "items" in field else place)
        elif name in ("prefill", "decode"):
            yield f"| `{place}.*` | | as `{path}.encode` |"


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if "x-kubernetes-int-or-string" in field:
        return "int or percentage" if "%" in field["pattern"] else "quantity"
    if field.get("type") == "array":
        return f"list of {_type(field['items'])}"
    if "additionalProperties" in field:
        return f"map to {_type(field['additionalProperties'])}"
    return str(field.get("type", "any"))


if __name__ == "__main__":
    TARGET.write_text(reference())
