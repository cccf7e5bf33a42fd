"""Flags are read as vLLM's own parser reads them."""

import random
from typing import Any

import pytest

from epd_operator.engine.capabilities import capabilities
from epd_operator.engine.flags import ParsedArguments, parse_args
from epd_operator.engine.release import Release
from tests.conformance.arguments import random_arguments
from tests.conformance.oracle import Oracle
from tests.conformance.verdicts import RELEASES

pytestmark = pytest.mark.conformance
LISTS = 400
FURTHER_CHECKED = (
    "--attention-config",
    "--compilation-config",
    "--ec-transfer-config",
    "--engram-config",
    "--ir-op-priority",
    "--kernel-config",
    "--kv-transfer-config",
    "--profiler-config",
    "--quantization-config",
    "--structured-outputs-config",
)
"""JSON flags whose classes check more than the names and types of fields."""
NOT_ASKED = ("--config", "--help", "--model", *FURTHER_CHECKED)
"""--model and the positional model exclude each other in vLLM; --help ends the process; --config reads a file."""


def read_the_same(parsed: ParsedArguments, derived: Any) -> bool:
    values = {name.removeprefix("--").replace("-", "_"): value for name, value in parsed.values.items()}
    return all(
        name not in values or repr(values[name]) == repr(value) or isinstance(value, str | list)
        for name, value in derived.items()
    )


@pytest.mark.parametrize("judge", [f"{release}-cuda" for release in RELEASES], indirect=True, scope="session")
@pytest.mark.parametrize("seed", range(4))
def test_random_lists(judge: Oracle, seed: int) -> None:
    known = capabilities(Release.parse(judge.release))
    rng = random.Random(seed)
    for _ in range(LISTS // 4):
        args = random_arguments(rng, known)
        parsed = parse_args(args, known)
        if any(argument.name in NOT_ASKED for argument in parsed.arguments):
            continue
        # Bounds are checked by the configuration classes, after the parser.
        problems = [problem for problem in parsed.problems if problem.kind != "out-of-bounds"]
        verdict = judge.parse(["model", *args])
        assert verdict.accepted == (not problems), (args, problems, verdict)
        assert not verdict.accepted or read_the_same(parsed, verdict.derived), (args, parsed.values, verdict)
