"""What can be read in the sources of one vLLM release without importing it.

Variables, connectors with the extra-config keys that their code reads, metrics, HTTP paths, and the models whose media
may travel as metadata only. Imports are followed, so a connector may be credited with a key of a module it only shares.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FACTORIES = {
    "ec_connectors": "vllm.distributed.ec_transfer.ec_connector.factory",
    "kv_connectors": "vllm.distributed.kv_transfer.kv_connector.factory",
}
# A connector's own code; what it imports from elsewhere reads no extra config.
CONNECTOR_CODE = (
    "vllm.distributed.ec_transfer.ec_connector.",
    "vllm.distributed.kv_transfer.kv_connector.v1.",
    "vllm.v1.kv_offload.",
    "vllm.v1.simple_kv_offload.",
)
MODELS = "vllm.model_executor.models"
ROUTE = re.compile(r'@(?:router|app)\.(?:get|post|delete|put|api_route|websocket)\(\s*"(/[^"]*)"')
METRIC = re.compile(r'"(vllm:[a-z][a-z_0-9]+)"')  # two colons are a torch operator


class Sources:
    """Parsed modules of one release, and the names that they define or import."""

    def __init__(self, root: Path) -> None:
        """`root` is the folder of the ``vllm`` package."""
        self.root = root
        self.tree = functools.cache(self._tree)
        self.imports = functools.cache(self._imports)

    def path(self, module: str) -> Path | None:
        """The file of a module, if the release has it."""
        base = self.root.joinpath(*module.split(".")[1:])
        candidates = (base.with_suffix(".py"), base / "__init__.py")
        return next((path for path in candidates if path.is_file()), None)

    def _tree(self, module: str) -> ast.Module:
        path = self.path(module)
        return ast.parse(path.read_text(encoding="utf-8") if path else "")

    def _imports(self, module: str) -> dict[str, tuple[str, str]]:
        """Local name -> (module it comes from, its name there), imports inside functions included."""
        found: dict[str, tuple[str, str]] = {}
        for node in ast.walk(self.tree(module)):
            if isinstance(node, ast.ImportFrom):
                source = self._absolute(module, node)
                found |= {alias.asname or alias.name: (source, alias.name) for alias in node.names}
        return found

    def _absolute(self, module: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        path = self.path(module)
        drop = node.level - (1 if path is not None and path.name == "__init__.py" else 0)
        parts = module.split(".")
        base = parts[: len(parts) - drop] if drop else parts
        return ".".join(base + (node.module.split(".") if node.module else []))

    def find_class(self, module: str, name: str) -> tuple[str, ast.ClassDef] | None:
        """The class that `name` means in `module`, followed through its imports."""
        for node in self.tree(module).body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return module, node
        source, original = self.imports(module).get(name, ("", ""))
        if source.startswith("vllm") and source != module:
            return self.find_class(source, original)
        return None

    def lineage(self, module: str, name: str) -> Iterator[tuple[str, ast.ClassDef]]:
        """The class and its bases, depth first, which is near enough to Python's own order here."""
        found = self.find_class(module, name)
        if found is None:
            return
        yield found
        for written in found[1].bases:
            base = written.value if isinstance(written, ast.Subscript) else written
            if isinstance(base, ast.Name):
                yield from self.lineage(found[0], base.id)

    def version(self) -> str:
        """``0.33.0``, as the package itself was stamped."""
        text = (self.root / "_version.py").read_text(encoding="utf-8")
        found = re.search(r"version = '(\d+\.\d+\.\d+)", text)
        if found is None:
            raise SystemExit(f"{self.root / '_version.py'}: no version in it")
        return found.group(1)


def literal(node: ast.expr | None) -> Any:
    """The value of a constant expression, else None."""
    try:
        return None if node is None else ast.literal_eval(node)
    except ValueError:
        return None


def env_variables(sources: Sources) -> dict[str, str]:
    """Every variable of ``vllm.envs`` with its annotated type as source text ("" where there is none)."""
    hints: dict[str, str] = {}
    registry: ast.expr | None = None
    for node in ast.walk(sources.tree("vllm.envs")):
        if isinstance(node, ast.If):
            hints |= {
                item.target.id: ast.unparse(item.annotation)
                for item in node.body
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
            }
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "environment_variables":
            registry = node.value
    keys = registry.keys if isinstance(registry, ast.Dict) else []
    return {name: hints.get(name, "") for name in sorted(str(literal(key)) for key in keys)}


def connectors(sources: Sources, factory: str) -> dict[str, list[str]]:
    """The registry of a connector factory: name -> extra-config keys that the connector's code reads."""
    found = {}
    for node in ast.walk(sources.tree(factory)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".register_connector"):
            name, module = (literal(argument) for argument in node.args[:2])
            parts = connector_modules(sources, module)
            found[name] = sorted({key for part in parts for key in extra_config_keys(sources.tree(part))})
    return found


def connector_modules(sources: Sources, module: str) -> set[str]:
    """The connector's module and what it imports of the connectors' own code."""
    seen: set[str] = set()
    todo = [module]
    while todo:
        current = todo.pop()
        if current in seen or sources.path(current) is None:
            continue
        seen.add(current)
        imported = (f"{source}.{name}" for source, name in sources.imports(current).values())
        candidates = [*imported, *(source for source, _ in sources.imports(current).values())]
        todo += [name for name in candidates if name.startswith(CONNECTOR_CODE) and name not in FACTORIES.values()]
    return seen


def extra_config_keys(tree: ast.Module) -> set[str]:
    """Keys in the ways in which connectors read their extra config."""
    aliases = {
        target.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and re.search(r"extra_config\b(?!\()", ast.unparse(node.value))
        for target in node.targets
        if isinstance(target, ast.Name) and not isinstance(node.value, ast.Call)
    }

    def is_config(node: ast.expr) -> bool:
        text = ast.unparse(node)
        return text.endswith("extra_config") or text in aliases

    keys: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func
            direct = ast.unparse(function).endswith("get_from_extra_config") or ast.unparse(function) in aliases
            if direct or (isinstance(function, ast.Attribute) and function.attr == "get" and is_config(function.value)):
                keys.add(str(node.args[0].value))
        elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and is_config(node.value):
            keys.add(str(node.slice.value))
    return keys


def metrics(root: Path) -> list[str]:
    """Names of Prometheus metrics, without the suffix ``_total`` of counters."""
    return sorted({name for path in root.rglob("*.py") for name in METRIC.findall(path.read_text(encoding="utf-8"))})


def routes(root: Path) -> list[str]:
    """Paths of the HTTP server."""
    sources = (root / "entrypoints").rglob("*.py")
    return sorted({path for source in sources for path in ROUTE.findall(source.read_text(encoding="utf-8"))})


def deprecated_flags(sources: Sources) -> dict[str, str]:
    """Flags that the release warns about, with its own words (constants named ..._DEPRECATION_MESSAGE)."""
    found = {}
    for node in sources.tree("vllm.engine.arg_utils").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("_DEPRECATION_MESSAGE"):
            words = str(literal(node.value))
            if flag := re.search(r"--[a-z][a-z-]+", words):
                found[flag.group()] = words
    return found


def architectures(sources: Sources) -> dict[str, tuple[str, str, str]]:
    """Every registered architecture: the table of the registry that names it, the module and class implementing it."""
    found: dict[str, tuple[str, str, str]] = {}
    for node in sources.tree(f"{MODELS}.registry").body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if isinstance(value, ast.Dict) and isinstance(node, ast.Assign | ast.AnnAssign):
            table = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            for key, item in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(item, ast.Tuple) and len(item.elts) == 2:
                    module, model = literal(item)
                    found[str(key.value)] = (table, module if "." in module else f"{MODELS}.{module}", model)
    return found
