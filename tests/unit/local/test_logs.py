from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_operator.local.logs import MAX_LINE, TAIL_BYTES, cause, first_error, last_lines

ENGINE_DIED = [
    "(Worker pid=1) ERROR 11-29 18:04:36 [core.py:1] Traceback (most recent call last):",
    "(Worker pid=1) ERROR 11-29 18:04:36 [core.py:1]     raise ValueError(",
    "(Worker pid=1) ERROR 11-29 18:04:36 [core.py:1] ValueError: num_gpu_blocks is too small",
    "(APIServer pid=2) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
]
ENGINE_KILLED = [
    "(APIServer pid=2) WARNING [core_client.py:817] [shutdown] MPClient: engine core exited unexpectedly; starting",
    "(APIServer pid=2) ERROR [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered",
]


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (ENGINE_DIED, ENGINE_DIED[2]),
        (["usage: vllm", "vllm: error: unrecognized arguments: --nope"], "vllm: error: unrecognized arguments: --nope"),
        (["OSError: [Errno 14] Bad address"], "OSError: [Errno 14] Bad address"),
        (["torch.OutOfMemoryError: CUDA out of memory."], "torch.OutOfMemoryError: CUDA out of memory."),
        (
            ["pydantic_core._pydantic_core.ValidationError: 1 error"] * 2,
            "pydantic_core._pydantic_core.ValidationError: 1 error",
        ),
        (ENGINE_KILLED, ENGINE_KILLED[0]),
        (["INFO: no error here", "Error:"], None),
        ([], None),
    ],
)
def test_first_error(lines: list[str], found: str | None) -> None:
    assert first_error(lines) == found


def test_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"first\n\n \nprogress 1\rprogress 2\r\n\x1b[31mred\x1b[0m\ttab\x00\xff\nlast")
    assert last_lines(log, 3) == ["progress 2", "red tab\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}", "last"]


def test_no_log(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "log", 3) == []
    assert cause(tmp_path / "log") is None


def test_only_the_end_of_a_long_log_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"ValueError: long ago\n" + b"x" * TAIL_BYTES * 2)
    assert cause(log) is None
    assert [len(line) for line in last_lines(log, 9)] == [MAX_LINE]


@given(st.binary(max_size=2000))
def test_any_bytes_become_printable_lines(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    log = tmp_path_factory.mktemp("logs") / "log"
    log.write_bytes(content)
    lines = last_lines(log, 5)
    assert len(lines) <= 5
    assert all(line.isprintable() and line.strip() and len(line) <= MAX_LINE for line in lines)
