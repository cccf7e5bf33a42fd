"""Which architectures take media as metadata only, read in the sources of one release.

A model does if its data parser declares ``embedding_fields`` and is made with ``allow_missing_mm_embeddings``.
"""

from __future__ import annotations

import ast
from typing import Any

from hack.vllm.sources import Sources, architectures

Fields = dict[str, dict[str, str]]


def metadata_items(sources: Sources) -> dict[str, dict[str, list[str]]]:
    """Architecture -> modality -> names of the metadata fields that a consumer needs."""
    found = {}
    for architecture, (_, module, model) in architectures(sources).items():
        info = _processing_info(sources, module, model)
        parser = info and _data_parser(sources, *info)
        fields = embedding_fields(sources, *parser) if parser else {}
        if fields:
            found[architecture] = {
                modality: sorted(name for name, role in roles.items() if role == "metadata")
                for modality, roles in sorted(fields.items())
            }
    return found


def embedding_fields(sources: Sources, module: str, parser: str) -> Fields:
    """``embedding_fields`` of a parser class: modality -> field -> role; references to other parsers are resolved."""
    for owner, node in sources.lineage(module, parser):
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign):
                target: ast.expr | None = statement.target
            elif isinstance(statement, ast.Assign):
                target = statement.targets[0]
            else:
                continue
            if isinstance(target, ast.Name) and target.id == "embedding_fields" and statement.value is not None:
                fields: Fields = _value(sources, statement.value, owner)
                return fields
    return {}


def _value(sources: Sources, node: ast.expr, module: str) -> Any:
    if isinstance(node, ast.Dict):
        result: dict[str, Any] = {}
        for key, item in zip(node.keys, node.values, strict=True):
            value = _value(sources, item, module)
            result |= value if key is None else {ast.literal_eval(key): value}
        return result
    if isinstance(node, ast.Subscript):
        return _value(sources, node.value, module)[ast.literal_eval(node.slice)]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return embedding_fields(sources, module, node.value.id)
    return ast.literal_eval(node)


def _processing_info(sources: Sources, module: str, model: str) -> tuple[str, str] | None:
    """The class named by ``@MULTIMODAL_REGISTRY.register_processor(..., info=...)`` of a model or its bases."""
    for owner, node in sources.lineage(module, model):
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("register_processor"):
                for keyword in decorator.keywords:
                    if keyword.arg == "info" and isinstance(keyword.value, ast.Name):
                        return owner, keyword.value.id
    return None


def _data_parser(sources: Sources, module: str, info: str) -> tuple[str, str] | None:
    """Module and class of the parser that ``info.get_data_parser`` makes, if it lets tensors be missing."""
    for owner, node in sources.lineage(module, info):
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "get_data_parser":
                for call in ast.walk(method):
                    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and "DataParser" in call.func.id:
                        allowed = any(word.arg in ("allow_missing_mm_embeddings", None) for word in call.keywords)
                        return (owner, call.func.id) if allowed else None
    return None
