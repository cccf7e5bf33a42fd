"""`epd explain --rollout OLD NEW`."""

import json
import re
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from epd_operator.cli.main import cli

ROLES = "encode: {replicas: 2}, decode: {replicas: 4}"


def write(path: Path, version: str = "0.32.0", roles: str = ROLES, more: str = "", name: str = "m") -> str:
    path.write_text(
        "apiVersion: epd.dev/v1alpha1\nkind: EPDDeployment\n"
        f"metadata: {{name: {name}}}\n"
        f"spec: {{model: {{id: Qwen/Qwen3-VL-8B-Instruct}}, engine: {{version: {version}}}, {roles}{more}}}\n"
    )
    return str(path)


def explain(*words: str) -> Result:
    result = CliRunner().invoke(cli, ["explain", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def told(tmp_path: Path, **new: str) -> dict[str, object]:
    result = explain("--rollout", write(tmp_path / "old"), write(tmp_path / "new", **new), "-o", "json")
    assert result.exit_code == 0, result.output
    value: dict[str, object] = json.loads(result.stdout)
    return value


def test_a_new_release_is_shown_step_by_step(tmp_path: Path) -> None:
    result = explain("--rollout", write(tmp_path / "old"), write(tmp_path / "new", version="0.33.0"))
    lines = [line.split() for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert ["0", "2", "+", "0", "4", "+", "0", "100", "+", "0", "as", "it", "is"] in lines
    last = [line for line in result.stdout.splitlines() if line][-1]
    assert "0 + 2   0 + 4   0 + 100" in last
    assert "outage" not in result.stdout


def test_as_json(tmp_path: Path) -> None:
    value = told(tmp_path, version="0.33.0")
    steps = value["steps"]
    assert isinstance(steps, list)
    assert value["outage"] is False
    assert value["oldRevision"] != value["newRevision"]
    assert steps[-1]["phase"] == "finished"
    assert steps[-1]["replicas"][value["newRevision"]] == {"encode": 2, "decode": 4}
    assert steps[-1]["serving"] == {value["newRevision"]: 100}


def test_one_replica_is_an_outage_and_says_so(tmp_path: Path) -> None:
    one = "encode: {replicas: 1}, decode: {replicas: 4}"
    old = write(tmp_path / "old", roles=one)
    result = explain("--rollout", old, write(tmp_path / "new", roles=one, version="0.33.0"))
    assert "outage: in between nothing serves" in result.stdout
    surge = explain(
        "--rollout", old, write(tmp_path / "new", roles=one, version="0.33.0", more=", rollout: {maxSurge: 1}")
    )
    assert "outage" not in surge.stdout


def test_a_change_within_one_revision(tmp_path: Path) -> None:
    roles = "encode: {replicas: 3}, decode: {replicas: 4, drainTimeoutSeconds: 33}"
    result = explain("--rollout", write(tmp_path / "old"), write(tmp_path / "new", roles=roles))
    assert "encode: 2 to 3 instances; none restarts" in result.stdout
    assert "decode: instances are replaced in place, maxSurge 0, maxUnavailable 1" in result.stdout
    assert told(tmp_path, roles=roles)["inPlace"] == ["decode"]
    assert told(tmp_path, roles=roles)["steps"] == []


def test_no_change(tmp_path: Path) -> None:
    result = explain("--rollout", write(tmp_path / "old"), write(tmp_path / "new"))
    assert "no instance changes" in result.stdout


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        ((), 2, "Give FILE..., or --rollout OLD NEW"),
        (("old", "--rollout", "old", "new"), 2, "Give FILE..., or --rollout OLD NEW"),
        (("--rollout", "old", "missing"), 2, "missing: no such file"),
        (("--rollout", "old", "other"), 2, "a rollout is of one object"),
        (("--rollout", "old", "two"), 2, "holds 2 EPDDeployments"),
        (("--rollout", "two", "two"), 2, "holds 2 EPDDeployments"),
        (("--rollout", "old", "bad"), 1, "[encode-without-consumer]"),
    ],
)
def test_what_cannot_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], status: int, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("old"))
    write(Path("new"))
    write(Path("other"), name="o")
    write(Path("bad"), roles="encode: {}")
    Path("two").write_text(Path("old").read_text() + "---\n" + Path("new").read_text())
    result = explain(*words)
    assert result.exit_code == status
    assert text in result.output


def test_the_example_of_the_documentation_is_what_is_printed(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    new = root / "examples" / "qwen3-vl.yaml"
    old = tmp_path / "old.yaml"
    old.write_text(new.read_text().replace("0.33.0", "0.32.0"))
    printed = explain("--rollout", str(old), str(new)).stdout
    page = (root / "docs" / "rollouts.md").read_text()
    example = page.partition("new.yaml\n")[2].partition("\n## ")[0]
    assert revisions_hidden(printed) == revisions_hidden(textwrap.dedent(example))


def revisions_hidden(text: str) -> list[str]:
    return re.sub(r"\b[0-9a-f]{8}\b", "REVISION", text).split()
