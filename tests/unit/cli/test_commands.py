"""The other commands: explain, render, rules, crd, help."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from epd_operator.cli.main import cli
from epd_operator.engine.rules import RULES

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
ROOT = Path(__file__).parents[3]


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, list(words))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_explain_json_is_the_contract(example: Path) -> None:
    code, out = run("explain", "-o", "json", str(example))
    (told,) = json.loads(out)
    assert code == 0
    assert told["findings"] == []
    assert {"topology", "revision", "findings", "roles", "proxy"} <= told.keys()
    for role in told["roles"]:
        assert {"name", "replicas", "image", "argv", "env", "sharedMemoryBytes", "preprocessingDevice"} <= role.keys()
        assert not role["argv"][0].startswith("-")
        flags = [word.partition("=")[0] for word in role["argv"] if word.startswith("--")]
        assert [flag for flag in flags if not any(key.startswith(flag) for key in role["reasons"])] == []
        assert all(role["reasons"].values())
    assert "$(status.podIP)" in told["roles"][0]["env"].values()


def test_explain_text_gives_a_reason_for_each_flag() -> None:
    code, out = run("explain", str(ROOT / "examples" / "quickstart.yaml"))
    assert code == 0
    assert "--mm-tensor-ipc torch_shm" in out
    assert "# spec.engine.args[0]" in out


def test_explain_of_a_refused_object_gives_findings_only(tmp_path: Path) -> None:
    file = tmp_path / "epd.yaml"
    file.write_text("apiVersion: epd.dev/v1alpha1\nkind: EPDDeployment\nmetadata: {name: a}\nspec: {model: {id: m}}\n")
    code, out = run("explain", "-o", "json", str(file))
    (told,) = json.loads(out)
    assert code == 1
    assert told["roles"] == []
    assert {finding["rule"] for finding in told["findings"]} == {"engine-version-missing", "decode-required"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_render_prints_valid_yaml_in_a_namespace(example: Path) -> None:
    code, out = run("render", "-n", "vision", str(example))
    objects = list(yaml.safe_load_all(out))
    assert code == 0
    assert {item["metadata"]["namespace"] for item in objects} == {"vision"}
    assert "Deployment" in {item["kind"] for item in objects}


@pytest.mark.parametrize("namespace", ["", "A", "a.b", "a" * 64, "-a", "a\n"])
def test_a_namespace_that_cannot_be_is_refused(namespace: str) -> None:
    assert run("render", "-n", namespace, str(EXAMPLES[0])) == (2, "")


def test_rules_lists_every_rule() -> None:
    code, out = run("rules", "-o", "json")
    assert code == 0
    told = json.loads(out)
    assert [rule["id"] for rule in told] == [rule.id for rule in RULES]
    for rule in told:
        assert rule.keys() == {"id", "severity", "kind", "releases", "what", "why", "source", "proved"}
        assert rule["source"]
    assert run("rules")[1].count("Source: ") == len(RULES)


def test_crd_prints_what_is_committed() -> None:
    code, out = run("crd")
    assert code == 0
    printed = {item["metadata"]["name"]: item for item in yaml.safe_load_all(out)}
    committed = {file.stem: yaml.safe_load(file.read_text()) for file in (ROOT / "crds").glob("*.yaml")}
    assert printed == committed


def test_help_names_every_command_without_importing_it() -> None:
    code, out = run("--help")
    assert code == 0
    for name in ("validate", "explain", "render", "run", "rules", "crd"):
        assert f"  {name} " in out
