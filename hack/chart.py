"""Bring what the chart repeats up to date: CRDs, descriptions in values.schema.json, README.md.

`python -m hack.chart` writes them, `make chart` does so. The words are those of the comments in values.yaml.
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
CHART = ROOT / "charts" / "epd-operator"
CRDS = ROOT / "crds"
LINE = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z]+):(?P<value>.*)$")

README = """\
# epd-operator

{description}. Chart {version}, operator {app_version}, Kubernetes {kube_version}.

    helm install epd-operator charts/epd-operator --namespace epd-system --create-namespace

The defaults need nothing beside a stock cluster: the operator makes the webhook's certificate. `NOTES.txt`, printed
after the installation, has the next command; `helm test` checks that objects are judged.

## CustomResourceDefinitions

They are part of the release: `helm upgrade` upgrades them, `helm rollback` rolls them back, `helm uninstall` leaves
them (`crds.keep`), and with them all EPDDeployments, which go on serving. A release of another name takes them over by
`helm install --take-ownership` (and `--force-conflicts` if they were applied by another tool), or leaves them alone
with `crds.install=false`.

## Several operators

Each release serves the namespaces in `namespaces`, or all, and the objects of its `operatorClass`. Only one may install
the CRDs (`crds.install`) and the proxies' ClusterRole (`proxy.clusterRole.create`). With `namespaces` set and
`webhook.enabled=false` the operator has no ClusterRole.

## Values

| value | default | what it is |
|---|---|---|
{rows}
"""


def comments(text: str) -> Iterator[tuple[str, str]]:
    """Dotted path and comment of each key that has one, and the path with no comment of each that has none."""
    path: list[tuple[int, str]] = []
    words: list[str] = []
    inside = -1
    for line in text.splitlines():
        if not line.strip():
            words = []
            continue
        if line.lstrip().startswith("#"):
            words.append(line.strip().lstrip("# "))
            continue
        found = LINE.match(line)
        if not found:
            continue
        indent = len(found["indent"])
        if 0 <= inside < indent:  # part of a default
            continue
        path = [*(part for part in path if part[0] < indent), (indent, found["key"])]
        inside = indent if words else -1
        yield ".".join(key for _, key in path), " ".join(words)
        words = []


def documented(text: str) -> dict[str, str]:
    """The comments of all values."""
    return {path: words for path, words in comments(text) if words}


def described(schema: dict[str, Any], words: dict[str, str]) -> dict[str, Any]:
    """The schema with the comments as descriptions. Raises KeyError: a value is in one of the two only."""
    left = dict(words)

    def walk(node: dict[str, Any], path: str) -> dict[str, Any]:
        if path in left:
            rest = {key: value for key, value in node.items() if key != "description"}
            return {"description": left.pop(path), **rest}
        if "properties" not in node:
            raise KeyError(f"values.yaml: no comment on {path}, which values.schema.json has")
        below = {key: walk(value, f"{path}.{key}".lstrip(".")) for key, value in node["properties"].items()}
        return {**node, "properties": below}

    result = walk(schema, "")
    if left:
        raise KeyError(f"values.schema.json: {', '.join(left)} missing, which values.yaml has")
    return result


def readme(chart: dict[str, str], values: dict[str, Any], words: dict[str, str]) -> str:
    """The chart's README."""
    rows = "\n".join(f"| `{path}` | `{_default(values, path)}` | {text} |" for path, text in words.items())
    return README.format(
        description=chart["description"],
        version=chart["version"],
        app_version=chart["appVersion"],
        kube_version=chart["kubeVersion"].replace(">=", "").replace("-0", "") + " or later",
        rows=rows,
    )


def _default(values: Any, path: str) -> str:
    for key in path.split("."):
        values = values[key]
    return json.dumps(values)


def made() -> dict[Path, str]:
    """What the files should hold."""
    text = (CHART / "values.yaml").read_text()
    words = documented(text)
    schema = json.loads((CHART / "values.schema.json").read_text())
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    return {
        CHART / "values.schema.json": json.dumps(described(schema, words), indent=2) + "\n",
        CHART / "README.md": readme(chart, yaml.safe_load(text), words),
        **{CHART / "files" / "crds" / file.name: file.read_text() for file in sorted(CRDS.glob("*.yaml"))},
    }


def main() -> None:
    files = made()
    shutil.rmtree(CHART / "files" / "crds", ignore_errors=True)
    (CHART / "files" / "crds").mkdir(parents=True)
    for path, text in files.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
