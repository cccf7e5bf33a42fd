"""Commands start quickly: nothing heavy is imported to judge a file."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HEAVY = {
    "aiohttp",
    "asyncio",
    "cryptography",
    "epd_operator.cluster",
    "epd_operator.controller",
    "httptools",
    "kopf",
    "kubernetes",
    "prometheus_client",
    "structlog",
    "torch",
    "uvloop",
    "vllm",
}


def imported(*words: str) -> set[str]:
    """The modules that a command has imported when it ends with exit status 0."""
    code = (
        "import sys; from epd_operator.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    return set(run.stderr.split())


@pytest.mark.parametrize(
    "words", [("validate",), ("validate", "-o", "json"), ("explain",), ("explain", "-o", "json")], ids=" ".join
)
def test_nothing_heavy_is_imported_to_judge_a_file(words: tuple[str, ...]) -> None:
    modules = imported(*words, str(ROOT / "examples/quickstart.yaml"))
    assert "epd_operator.engine.rules.table" in modules
    assert not HEAVY & modules


def test_nothing_is_rendered_to_judge_a_file() -> None:
    modules = imported("validate", str(ROOT / "examples/quickstart.yaml"))
    assert not {"jinja2", "epd_operator.manifests.render", "epd_operator.plan.build"} & modules


@pytest.mark.parametrize("words", [("--help",), ("--version",)], ids=" ".join)
def test_help_imports_no_command(words: tuple[str, ...]) -> None:
    assert not {"pydantic", "yaml", "epd_operator.engine"} & imported(*words)
