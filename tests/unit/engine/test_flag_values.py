from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_operator.engine.capabilities import capabilities
from epd_operator.engine.flag_values import expand_sizes, read_size, read_value
from epd_operator.engine.release import Release

KNOWN = capabilities(Release(0, 33))


@pytest.mark.parametrize(
    ("text", "value"),
    [("1k", 1000), ("1K", 1024), ("25.6k", 25600), ("2M", 2 << 20), ("3g", 3 * 10**9), (" 7 ", 7), ("1_000", 1000)],
)
def test_read_size(text: str, value: int) -> None:
    assert read_size(text) == value


@pytest.mark.parametrize("text", ["", "k", "1.5K", "1kk", "x"])
def test_read_size_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        read_size(text)


def test_expand_sizes_leaves_texts_alone() -> None:
    assert expand_sizes('{"a": 2k, "b": "2k", "c": [1M]}') == '{"a": 2000, "b": "2k", "c": [1048576]}'


@pytest.mark.parametrize(
    ("flag", "text", "value"),
    [
        ("--tensor-parallel-size", "2", 2),
        ("--gpu-memory-utilization", "0.5", 0.5),
        ("--max-num-batched-tokens", "8K", 8192),
        ("--max-model-len", "auto", -1),
        ("--revision", "None", None),
        ("--mm-processor-device", "cuda", "cuda"),
        ("--moe-backend", "Deep-GEMM", "deep_gemm"),
        ("--pt-load-map-location", "text", "text"),
        ("--hf-overrides", '{"a": 1}', {"a": 1}),
        ("--media-io-kwargs", "null", None),
        ("--lora-modules", "name=path", "name=path"),
        ("--ec-transfer-config", '{"ec_role": "ec_both", "ec_port": "5"}', {"ec_role": "ec_both", "ec_port": "5"}),
    ],
)
def test_right_values(flag: str, text: str, value: Any) -> None:
    assert read_value(KNOWN.flags[flag], text, KNOWN) == (value, None)


@pytest.mark.parametrize(
    ("flag", "text", "trouble", "expected"),
    [
        ("--tensor-parallel-size", "two", "invalid-type", "an integer"),
        ("--gpu-memory-utilization", "1.2", "out-of-bounds", "at most 1"),
        ("--mm-tensor-ipc", "cuda_ipc", "invalid-choice", "one of direct_rpc, torch_shm"),
        ("--limit-mm-per-prompt", "{", "invalid-type", "JSON"),
        ("--ec-transfer-config", '{"ec_rank": 0}', "unknown-field", "a field of ECTransferConfig"),
        ("--ec-transfer-config", '{"ec_role": "encoder"}', "invalid-field", "ec_both or ec_consumer or ec_producer"),
        ("--ec-transfer-config", "[]", "invalid-type", "a JSON object"),
        ("--lora-modules", "name", "invalid-type", "name=path"),
        ("--hf-overrides", "null", "invalid-type", "a JSON object"),
    ],
)
def test_wrong_values(flag: str, text: str, trouble: str, expected: str) -> None:
    _, wrong = read_value(KNOWN.flags[flag], text, KNOWN)
    assert wrong is not None
    assert wrong.trouble == trouble
    assert expected in wrong.expected


def test_a_wrong_value_names_the_nearest() -> None:
    _, wrong = read_value(KNOWN.flags["--mm-processor-device"], "cudas", KNOWN)
    assert wrong is not None
    assert wrong.nearest == "cuda"


@given(st.sampled_from(sorted(KNOWN.flags)), st.text())
def test_never_raises(name: str, text: str) -> None:
    read_value(KNOWN.flags[name], text, KNOWN)


@given(
    st.sampled_from(sorted(name for name, flag in KNOWN.flags.items() if flag.fields)),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
)
def test_never_raises_on_json(name: str, value: Any) -> None:
    import json

    read_value(KNOWN.flags[name], json.dumps(value), KNOWN)
