"""Flags are read as vLLM's own parser reads them."""

import random
from typing import Any

import pytest

from epd_operator.engine.capabilities import Flag, capabilities
from epd_operator.engine.flags import ParsedArguments, parse_args
from epd_operator.engine.release import Release
from tests.conformance.arguments import random_arguments
from tests.conformance.conftest import Judges
from tests.conformance.verdicts import RELEASES

pytestmark = pytest.mark.conformance
LISTS = 400
LATER = ("--config-format", "--data-parallel-backend", "--quantization", "--reasoning-parser", "--tool-call-parser")
"""Flags whose names are looked up after the parser; so are enumerations, and what kind of JSON a flag takes."""
NOT_ASKED = ("--config", "--help", "--model", "--ir-op-priority", *LATER)
"""--model and the positional model exclude each other in vLLM; --help ends the process; --config reads a file;
fields of --ir-op-priority may be given in other shapes."""


def read_the_same(parsed: ParsedArguments, derived: Any) -> bool:
    values = {name.removeprefix("--").replace("-", "_"): value for name, value in parsed.values.items()}
    return all(
        name not in values or repr(values[name]) == repr(value) or isinstance(value, str | list)
        for name, value in derived.items()
    )


def compared_inside(flag: Flag) -> bool:
    """Whether the class of a JSON flag may also compare its fields with each other."""
    return flag.has_class


def later(flag: Flag) -> bool:
    """Whether the value is checked after the parser."""
    return flag.kind == "upper" or flag.name == "--optimization-level" or (flag.fields or "").islower()


@pytest.mark.parametrize("judges", RELEASES, indirect=True, scope="session")
@pytest.mark.parametrize("seed", range(4))
def test_random_lists(judges: Judges, seed: int) -> None:
    known = capabilities(Release.parse(judges.release))
    rng = random.Random(seed)
    for _ in range(LISTS // 4):
        args = random_arguments(rng, known)
        parsed = parse_args(args, known)
        if any(argument.name in NOT_ASKED or later(known.flags[argument.name]) for argument in parsed.arguments):
            continue
        # Bounds are checked by the configuration classes, after the parser.
        problems = [problem for problem in parsed.problems if problem.kind != "out-of-bounds"]
        verdict = judges["cuda"].parse(["model", *args])
        if problems or not any(compared_inside(known.flags[argument.name]) for argument in parsed.arguments):
            assert verdict.accepted == (not problems), (args, problems, verdict)
        assert not verdict.accepted or read_the_same(parsed, verdict.derived), (args, parsed.values, verdict)
