"""docs/api.md is what the types say."""

from hack.api_reference import TARGET, reference


def test_committed_page_is_current() -> None:
    assert TARGET.read_text() == reference()
