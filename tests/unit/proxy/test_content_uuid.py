import pytest

from epd_proxy.content_uuid import ContentNames, random_key


def test_equal_contents_have_equal_names_and_others_have_others() -> None:
    namer = ContentNames(b"k" * 32).of("")
    names = {namer.name(content, about) for content in (b"", b"a", b"b", b"a" * 100_000) for about in (b"", b"x")}
    assert len(names) == 8
    assert namer.name(b"a", b"x") == ContentNames(b"k" * 32).of("").name(memoryview(b"a"), b"x")
    assert all(len(name) == 32 and int(name, 16) >= 0 for name in names)


def test_keys_and_tenants_keep_names_apart() -> None:
    names = {
        ContentNames(key).of(tenant).name(b"a", b"") for key in (b"k" * 32, b"l" * 32) for tenant in ("", "t", "u")
    }
    assert len(names) == 6


def test_what_is_content_and_what_is_about_it_are_not_mixed_up() -> None:
    namer = ContentNames(random_key()).of("")
    assert namer.name(b"ab", b"c") != namer.name(b"a", b"bc")


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 16"):
        ContentNames(b"short")
