from hypothesis import given
from hypothesis import strategies as st

from epd_proxy.chunks import END, chunk, dechunked, last_boundary


@given(st.lists(st.binary(min_size=1, max_size=50)), st.integers(min_value=0, max_value=60))
def test_whole_chunks_are_found_however_the_rest_is_cut(parts: list[bytes], cut: int) -> None:
    whole = b"".join(map(chunk, parts))
    assert last_boundary(whole) == len(whole)
    more = chunk(b"x" * 50)
    assert last_boundary(whole + more[: min(cut, len(more) - 1)]) == len(whole)
    assert dechunked(whole + END) == b"".join(parts)


def test_extensions_are_ignored() -> None:
    assert dechunked(b"3;a=b\r\nabc\r\n" + END) == b"abc"
