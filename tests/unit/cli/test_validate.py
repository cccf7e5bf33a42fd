"""`epd validate` as a user meets it: text, JSON and exit status."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from epd_operator.cli.main import cli

VALID = """\
apiVersion: epd.dev/v1alpha1
kind: EPDDeployment
metadata: {name: a}
spec:
  model: {id: Qwen/Qwen3-VL-8B-Instruct}
  engine: {version: 0.33.0}
  encode: {replicas: 2}
  decode: {}
"""
BROKEN = VALID.replace(
    "encode: {replicas: 2}", "encode: {parallelism: {tensor: 2}, preprocessing: {tensorIPC: torch_shm}}"
)
WARNED = VALID.replace("encode: {replicas: 2}", "encode: {replicas: 0}")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "epd.yaml"


def run(*words: str, stdin: str | None = None) -> tuple[int, str, str]:
    result = CliRunner().invoke(cli, list(words), input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def test_valid(file: Path) -> None:
    file.write_text(VALID)
    assert run("validate", str(file)) == (0, f"{file}: a: ok\n", "")


def test_finding_names_path_value_reason_remedy_and_rule(file: Path) -> None:
    file.write_text(BROKEN)
    code, out, _ = run("validate", str(file))
    assert code == 1
    assert out == (
        f"{file}: a: error: spec.encode.parallelism.tensor: 2: torch_shm works only with tensor, pipeline and data "
        "parallelism 1 (vLLM refuses to start); set tensor to 1 or preprocessing.tensorIPC to direct_rpc "
        "[torch-shm-single-rank]\n"
    )


def test_json_has_the_documented_keys(file: Path) -> None:
    file.write_text(VALID.replace("name: a", "name: ok") + "---\n" + BROKEN)
    code, out, _ = run("validate", "-o", "json", str(file))
    (finding,) = json.loads(out)
    assert code == 1
    assert finding == {
        "rule": "torch-shm-single-rank",
        "severity": "error",
        "path": "spec.encode.parallelism.tensor",
        "value": 2,
        "message": "torch_shm works only with tensor, pipeline and data parallelism 1 (vLLM refuses to start)",
        "remedy": "set tensor to 1 or preprocessing.tensorIPC to direct_rpc",
        "release": None,
        "file": str(file),
        "document": 1,
        "name": "a",
    }


def test_warnings_do_not_fail(file: Path) -> None:
    file.write_text(WARNED)
    code, out, _ = run("validate", str(file))
    assert code == 0
    assert "warning: spec.encode.replicas: 0:" in out
    assert out.endswith("a: ok\n")


def test_unreadable_wins_over_findings_and_hides_none(file: Path) -> None:
    file.write_text(BROKEN)
    code, out, err = run("validate", "-o", "json", str(file), "none.yaml")
    assert code == 2
    assert [finding["rule"] for finding in json.loads(out)] == ["torch-shm-single-rank"]
    assert err == "error: none.yaml: no such file or directory\n"


def test_standard_input() -> None:
    code, out, _ = run("validate", "-", stdin=VALID)
    assert (code, out) == (0, "-: a: ok\n")


def test_usage_errors_exit_2() -> None:
    assert run("validate")[0] == 2
    assert run("no-such-command")[0] == 2


def test_nothing_heavy_is_imported(file: Path) -> None:
    file.write_text(VALID)
    heavy = ("torch", "kopf", "kubernetes", "aiohttp", "jinja2", "vllm", "rich", "asyncio")
    program = (
        f"import sys\nfrom epd_operator.cli.main import cli\ncli(['validate', {str(file)!r}], standalone_mode=False)\n"
    )
    program = program.replace("cli([", "import atexit\natexit.register(lambda: print(sorted(sys.modules)))\ncli([")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = done.stdout.splitlines()[-1]
    assert [name for name in heavy if f"'{name}'" in modules] == []
