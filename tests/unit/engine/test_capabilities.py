import difflib

import pytest

from epd_operator.engine.capabilities import Bounds, canonical_spelling, capabilities, known_minors, nearest
from epd_operator.engine.release import Release

OLDEST, NEWEST = (Release(*minor) for minor in (known_minors()[0], known_minors()[-1]))


def test_known_minors_are_every_supported_release() -> None:
    assert known_minors()[:6] == ((0, 28), (0, 29), (0, 30), (0, 31), (0, 32), (0, 33))


@pytest.mark.parametrize("minor", known_minors())
def test_a_release_says_what_the_operator_rests_on(minor: tuple[int, int]) -> None:
    known = capabilities(Release(*minor))
    assert known.exact
    assert Release.parse(known.version).minor_key == minor
    assert len(known.flags) > 250
    assert len(known.env) > 250
    assert "ec_cpu_bytes" in known.ec_connectors["ECCPUConnector"]
    assert "shared_storage_path" in known.ec_connectors["ECExampleConnector"]
    assert "kv_lease_duration" in known.kv_connectors["NixlConnector"]
    assert known.metadata_items["Qwen2VLForConditionalGeneration"]["image"] == ("image_grid_thw",)
    assert known.multimodal("Qwen2VLForConditionalGeneration") is True
    assert known.multimodal("Qwen2ForCausalLM") is False
    assert known.multimodal("NoSuchModel") is None
    assert "/v1/chat/completions" in known.routes
    assert "vllm:num_requests_running" in known.metrics


def test_patch_releases_share_a_table() -> None:
    assert capabilities(Release(0, 30, 2)) is capabilities(Release(0, 30))


@pytest.mark.parametrize(
    ("release", "served_by"), [(Release(99, 0), NEWEST), (Release(0, 1), OLDEST)], ids=["newer", "older"]
)
def test_an_unknown_release_is_served_by_the_nearest(release: Release, served_by: Release) -> None:
    known = capabilities(release)
    assert not known.exact
    assert Release.parse(known.version).minor_key == served_by.minor_key


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("-tp", "--tensor-parallel-size"),
        ("--tensor_parallel_size", "--tensor-parallel-size"),
        ("--no-enable-prefix-caching", "--enable-prefix-caching"),
        ("--device-memory-utilization", "--gpu-memory-utilization"),
    ],
)
def test_flag_by_any_spelling(spelling: str, name: str) -> None:
    flag = capabilities(NEWEST).flag(spelling)
    assert flag is not None
    assert flag.name == name


def test_flag_knows_no_abbreviation_and_names_the_nearest() -> None:
    known = capabilities(NEWEST)
    assert known.flag("--tensor-parallel") is None
    assert known.nearest_flag("--tensor_paralel_size") == "--tensor-parallel-size"
    assert known.nearest_flag("--zzzzzz") is None


def test_disable_x_is_a_spelling_from_0_33() -> None:
    assert capabilities(Release(0, 32)).flag("--disable-mm-embeds") is None
    flag = capabilities(Release(0, 33)).flag("--disable-mm-embeds")
    assert flag is not None
    assert "--disable-mm-embeds" in flag.off


def test_canonical_spelling_stops_at_the_first_dot() -> None:
    assert canonical_spelling("--ec_transfer_config.ec_role") == "--ec-transfer-config.ec_role"
    assert canonical_spelling("-a_b") == "-a_b"


def test_nearest_needs_a_likeness() -> None:
    assert nearest("NixlConector", ["NixlConnector", "Other"]) == "NixlConnector"
    assert nearest("abc", ["xyz"]) is None


@pytest.mark.parametrize(
    ("bounds", "value", "limit"),
    [
        (Bounds(gt=0), 0, "more than 0"),
        (Bounds(ge=1), 0, "at least 1"),
        (Bounds(lt=1), 1, "less than 1"),
        (Bounds(le=1), 1.2, "at most 1"),
        (Bounds(multiple_of=16), 8, "a multiple of 16"),
        (Bounds(ge=0), float("nan"), "at least 0"),
        (Bounds(gt=0, le=1), 0.5, None),
        (Bounds(), -1, None),
    ],
)
def test_bounds(bounds: Bounds, value: float, limit: str | None) -> None:
    assert bounds.broken_by(value) == limit


def test_nearest_finds_what_a_close_look_at_every_flag_would_find() -> None:
    known = capabilities(NEWEST).spellings
    misspelled = [flag[:6] + flag[7:] for flag in sorted(known)[::30] if len(flag) > 8]
    assert len(misspelled) > 15
    assert {word: nearest(word, known) for word in misspelled} == {
        word: difflib.get_close_matches(word, known, n=1)[0] for word in misspelled
    }
