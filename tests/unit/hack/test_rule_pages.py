"""docs/rules is what the rules say."""

from hack.rule_pages import TARGET, pages


def test_committed_pages_are_current() -> None:
    assert {path.name: path.read_text(encoding="utf-8") for path in TARGET.glob("*.md")} == pages()
