"""Write the capability table of one vLLM release, as the operator ships it.

    python -m hack.vllm.table --root DIR --flags FLAGS.json > operator/epd_operator/engine/releases/0.33.json

DIR is the folder of the ``vllm`` package; FLAGS.json is what ``hack.vllm.flags`` printed for the same release.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from hack.vllm import metadata, sources

TABLES = Path(__file__).parents[2] / "operator/epd_operator/engine/releases"


def static_part(root: Path) -> dict[str, Any]:
    """All of a release's table that its sources tell."""
    release = sources.Sources(root)
    return {
        "version": release.version(),
        "env": sources.env_variables(release),
        **{key: sources.connectors(release, factory) for key, factory in sources.FACTORIES.items()},
        "architectures": models(release),
        "metadata_items": metadata.metadata_items(release),
        "metrics": sources.metrics(root),
        "routes": sources.routes(root),
    }


def models(release: sources.Sources) -> dict[str, str]:
    """Every registered architecture: ``multimodal`` or ``text``, by the interfaces that its class inherits."""
    return {
        architecture: "multimodal"
        if any(cls.name == "SupportsMultiModal" for _, cls in release.lineage(module, model))
        else "text"
        for architecture, (_, module, model) in sorted(sources.architectures(release).items())
    }


def dump(table: dict[str, Any]) -> str:
    """JSON with one entry a line, so that two releases can be compared by ``diff``."""
    parts = []
    for name, value in table.items():
        if isinstance(value, dict):
            lines = [f"  {json.dumps(key)}: {json.dumps(item, sort_keys=True)}" for key, item in sorted(value.items())]
            parts.append(f"{json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n}")
        elif isinstance(value, list):
            parts.append(f"{json.dumps(name)}: [\n" + ",\n".join(f"  {json.dumps(item)}" for item in value) + "\n]")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--root", type=Path, required=True)
    options.add_argument("--flags", type=Path, required=True)
    given = options.parse_args()
    sys.stdout.write(dump(static_part(given.root) | json.loads(given.flags.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
