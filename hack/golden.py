"""The rendering of each example, kept in tests/unit/manifests/golden. `make golden` writes it anew."""

from pathlib import Path

from epd_operator.api.parse import parse
from epd_operator.cli.reader import Unreadable, read
from epd_operator.cli.yaml_output import dump_all
from epd_operator.manifests import render
from epd_operator.plan.build import build

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
GOLDEN = ROOT / "tests" / "unit" / "manifests" / "golden"


def renderings() -> dict[str, str]:
    """By file name: what every example of an EPDDeployment renders as, as YAML."""
    found = {}
    for file in sorted(EXAMPLES.glob("*.yaml")):
        try:
            documents = read(str(file))
        except Unreadable:  # the claims that examples refer to
            continue
        deployments = [parse(document.content).deployment for document in documents]
        objects = [item for deployment in deployments if deployment is not None for item in render(build(deployment))]
        found[file.name] = dump_all(objects)
    return found


def write() -> None:
    """Replace all golden files."""
    GOLDEN.mkdir(exist_ok=True)
    for old in GOLDEN.glob("*.yaml"):
        old.unlink()
    for name, text in renderings().items():
        (GOLDEN / name).write_text(text)


if __name__ == "__main__":
    write()
