"""What all API types share: camelCase names, unknown fields refused, values immutable, Kubernetes' idea of null."""

from typing import Annotated, Any, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    Strict,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

JSON: TypeAlias = Any
"""A JSON value. Borrowed Kubernetes shapes and vLLM's own configuration keys are passed on as such."""


class APIModel(BaseModel):
    """Base of every API type."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        protected_namespaces=(),
        defer_build=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: object) -> object:
        """Drop nulls, as the API server prunes them from fields that are not nullable.

        https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/ (nullable)
        """
        if isinstance(data, dict):
            return {key: value for key, value in data.items() if value is not None}
        return data


Str = Annotated[str, Strict(), StringConstraints(min_length=1, max_length=4096)]
Int = Annotated[int, Strict()]
Bool = Annotated[bool, Strict()]
Name = Annotated[
    str,
    Strict(),
    StringConstraints(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"),
]
"""Name of a Kubernetes object (RFC 1123 subdomain)."""
Count = Annotated[int, Strict(), Field(ge=0, le=10_000)]
Degree = Annotated[int, Strict(), Field(ge=1, le=1024)]
Seconds = Annotated[int, Strict(), Field(ge=0, le=86_400)]
OpenObject = Annotated[
    dict[str, JSON],
    Field(json_schema_extra={"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
]
"""A borrowed Kubernetes or vLLM shape: any object here, checked by the operator where it is used."""
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
LabelValue = Annotated[str, Strict(), StringConstraints(max_length=63, pattern=LABEL_VALUE)]
"""https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set"""
KEY = r"^([a-zA-Z0-9][-a-zA-Z0-9.]{0,252}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
_Key = Annotated[str, StringConstraints(pattern=KEY)]
Labels = Annotated[
    dict[_Key, LabelValue],
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"type": "string", "maxLength": 63, "pattern": LABEL_VALUE}}
    ),
]
Annotations = Annotated[
    dict[_Key, Annotated[str, Strict()]],
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
]
Argument = Annotated[str, Strict(), StringConstraints(max_length=65536)]
"""One word of a command line."""


def _no_duplicates(items: list[Any]) -> list[Any]:
    seen: set[str] = set()
    for item in items:
        name = item if isinstance(item, str) else item.name
        if name in seen:
            raise PydanticCustomError("duplicate", "has {name} twice", {"name": name})
        seen.add(name)
    return items


NoDuplicates = AfterValidator(_no_duplicates)
"""Of a list that the API server keeps as a map by name, or as a set: it refuses an item that is there already."""
MAP_BY_NAME: dict[str, JSON] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
"""Schema of a list whose items are known by their name (server-side apply merges them)."""
