from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_operator.engine.capabilities import capabilities, known_minors
from epd_operator.engine.flags import parse_args
from epd_operator.engine.release import Release

KNOWN = capabilities(Release(0, 33))


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("-tp 2", {"--tensor-parallel-size": 2}),
        ("-tp=2", {"--tensor-parallel-size": 2}),
        ("--tensor_parallel_size=2", {"--tensor-parallel-size": 2}),
        ("--tensor 2", {"--tensor-parallel-size": 2}),
        ("--tensor 2 -tp 4", {"--tensor-parallel-size": 4}),
        ("-n2", {"--nnodes": 2}),
        ("-O3", {"--optimization-level": "3"}),
        ("-O=3", {"--optimization-level": "3"}),
        ("-O 3", {"--optimization-level": "3"}),
        ("--enable-prefix-caching", {"--enable-prefix-caching": True}),
        ("--no_enable_prefix_caching", {"--enable-prefix-caching": False}),
        ("--disable-prefix-caching", {"--enable-prefix-caching": False}),
        ("--seed -1", {"--seed": -1}),
        ("--api-key a b", {"--api-key": ["a", "b"]}),
        ("--middleware a --middleware b", {"--middleware": ["a", "b"]}),
        ("--hf-token", {"--hf-token": True}),
        ("--ec-transfer-config.ec_role ec_both", {"--ec-transfer-config": {"ec_role": "ec_both"}}),
        ("--ec_transfer_config.ec_role=ec_both", {"--ec-transfer-config": {"ec_role": "ec_both"}}),
        (
            "--ec-transfer-config.ec_connector_extra_config.a 2k --ec-transfer-config.ec_connector_extra_config.b+ x,y",
            {"--ec-transfer-config": {"ec_connector_extra_config": {"a": 2000, "b": ["x", "y"]}}},
        ),
        (
            "-cc.mode 3 -cc.custom_ops+ a -cc.custom_ops+ b",
            {"--compilation-config": {"mode": 3, "custom_ops": ["a", "b"]}},
        ),
        ('--ec-transfer-config {"ec_ip":"a"} --ec-transfer-config.ec_ip b', {"--ec-transfer-config": {"ec_ip": "b"}}),
    ],
)
def test_right_lines(line: str, values: dict[str, Any]) -> None:
    parsed = parse_args(line.split(), KNOWN)
    assert parsed.problems == ()
    assert parsed.values == values


@pytest.mark.parametrize(
    ("line", "kind", "index", "found", "nearest"),
    [
        ("-tp 2 --no-such-flag", "unknown-flag", 2, "--no-such-flag", None),
        ("--mm-tensor-ipcc torch_shm", "unknown-flag", 0, "--mm-tensor-ipcc", "--mm-tensor-ipc"),
        ("--mm-tensor-ipcc=torch_shm", "unknown-flag", 0, "--mm-tensor-ipcc", "--mm-tensor-ipc"),
        ("--mm-proc x", "ambiguous-flag", 0, "--mm-proc", None),
        ("-tp", "missing-value", 0, "-tp", None),
        ("-tp --seed 1", "missing-value", 0, "-tp", None),
        ("--ec-transfer-config.ec_role", "missing-value", 0, "--ec-transfer-config.ec_role", None),
        ("--enforce-eager=1", "unexpected-value", 0, "1", None),
        ("--seed.a 1", "unexpected-value", 0, "--seed.a", None),
        ("-tp 2 3", "stray-value", 2, "3", None),
        ("-tp two", "invalid-type", 0, "two", None),
        ("--mm-tensor-ipc=torch-shm", "invalid-choice", 0, "torch-shm", "torch_shm"),
        ("--gpu-memory-utilization 2", "out-of-bounds", 0, "2", None),
        ("--ec-transfer-config.ec_rol ec_both", "unknown-field", 0, "ec_rol", "ec_role"),
        ("-tp 2 --", "stray-value", 2, "--", None),
    ],
)
def test_wrong_lines(line: str, kind: str, index: int, found: str, nearest: str | None) -> None:
    problem = parse_args(line.split(), KNOWN).problems[0]
    assert (problem.kind, problem.index, problem.found, problem.nearest) == (kind, index, found, nearest)


def test_all_mistakes_are_found_at_once() -> None:
    parsed = parse_args(["--foo", "1", "-tp", "x", "stray", "--port"], KNOWN)
    assert [problem.kind for problem in parsed.problems] == [
        "unknown-flag",
        "invalid-type",
        "stray-value",
        "missing-value",
    ]


@pytest.mark.parametrize(
    "words", [("--hf-overrides." + ".".join("a" * 3000), "1"), ("--hf-overrides.a", "9" * 4300 + "K")]
)
def test_what_json_cannot_say_is_a_problem(words: tuple[str, ...]) -> None:
    parsed = parse_args(words, capabilities(Release(0, 33)))
    assert [problem.kind for problem in parsed.problems] == ["invalid-type"]
    assert parsed.arguments == ()


def test_last_counts_and_all_are_kept() -> None:
    parsed = parse_args(["-tp", "2", "--tensor-parallel-size", "4"], KNOWN)
    last = parsed.last("--tensor-parallel-size")
    assert last is not None
    assert (last.index, last.text) == (2, "--tensor-parallel-size 4")
    assert [argument.index for argument in parsed.all("--tensor-parallel-size")] == [0, 2]
    assert parsed.last("--seed") is None


WORDS = st.sampled_from(
    [
        *sorted(KNOWN.spellings)[::7],
        "--",
        "-",
        "",
        "=",
        "-O",
        "-O2",
        ".",
        "-.5",
        "--a.b",
        "--ec-transfer-config.a+",
        "1",
    ]
)


@given(
    st.lists(WORDS | st.text() | st.builds("{}={}".format, WORDS, st.text()) | st.text().map("-{}".format), max_size=8),
    st.sampled_from(known_minors()),
)
def test_never_raises_and_every_word_is_accounted_for(args: list[str], minor: tuple[int, int]) -> None:
    parsed = parse_args(args, capabilities(Release(*minor)))
    named = {argument.index for argument in parsed.arguments} | {problem.index for problem in parsed.problems}
    assert named <= set(range(len(args)))
    assert not args or named
    assert isinstance(parsed.values, dict)
