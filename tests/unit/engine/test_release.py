"""Versions and image tags as releases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epd_operator.api.device import DeviceType
from epd_operator.engine.images import default_image, repository_of
from epd_operator.engine.release import Release


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("0.33.0", (0, 33, 0)),
        ("v0.33.1", (0, 33, 1)),
        ("0.33", (0, 33, 0)),
        ("0.33.0rc1", (0, 33, 0)),
        ("0.33.0.dev5", (0, 33, 0)),
        ("0.33.0rc1.dev5+gabc", (0, 33, 0)),
        ("0.33.0.post1", (0, 33, 0)),
        ("0.32.0+cpu", (0, 32, 0)),
        ("0.32.0-cu130", (0, 32, 0)),
        ("12.0.1", (12, 0, 1)),
    ],
)
def test_versions(text: str, release: tuple[int, int, int]) -> None:
    assert Release.parse(text) == release


@pytest.mark.parametrize(
    "text",
    [
        *("", "latest", "nightly", "main", "0", "33", "0.x", "0.33.x", "vv0.33", " 0.33.0", "0.33.0\n", "0..33"),
        *("0.33.0.1", "\u0660.\u0663", "0.33.0 ", "-0.33", "0,33", "9" * 65, "0.33.0rc1x"),
    ],
)
def test_what_is_no_version(text: str) -> None:
    with pytest.raises(ValueError, match="is not a vLLM release"):
        Release.parse(text)


@given(st.text(max_size=70))
def test_nothing_but_value_error(text: str) -> None:
    try:
        release = Release.parse(text)
    except ValueError:
        return
    assert Release.parse(str(release)) == release


@given(st.tuples(*[st.integers(0, 9999)] * 3))
def test_versions_come_back(numbers: tuple[int, int, int]) -> None:
    assert Release.parse(str(Release(*numbers))) == numbers


@pytest.mark.parametrize(
    ("image", "release"),
    [
        ("vllm/vllm-openai:v0.33.0", (0, 33, 0)),
        ("localhost:5000/a/b:0.32.1-mine", (0, 32, 1)),
        ("a:0.33.0@sha256:00", (0, 33, 0)),
        ("a:latest", None),
        ("a", None),
        ("localhost:5000/a", None),
        ("a@sha256:00", None),
        ("0.33.0", None),
    ],
)
def test_image_tags(image: str, release: tuple[int, int, int] | None) -> None:
    assert Release.of_image(image) == release


@given(st.text(max_size=40))
def test_any_image_reference(image: str) -> None:
    Release.of_image(image)
    repository_of(image)


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("a/b:c", "a/b"),
        ("localhost:5000/b", "localhost:5000/b"),
        ("localhost:5000/b:c@sha256:0", "localhost:5000/b"),
        ("a", "a"),
    ],
)
def test_repositories(image: str, repository: str) -> None:
    assert repository_of(image) == repository


def test_comparison_is_by_number() -> None:
    assert Release.parse("0.9.2") < Release.parse("0.28.0") < Release.parse("0.28.1") < Release.parse("1.0.0")
    assert Release.parse("0.28.9").minor_key == (0, 28)
    assert Release.parse("0.28.9").minor_text == "0.28"


def test_published_images() -> None:
    release = Release(0, 33, 1)
    assert default_image(release, DeviceType.CUDA) == "vllm/vllm-openai:v0.33.1"
    assert default_image(release, DeviceType.XPU) is None


@pytest.mark.parametrize(
    ("release", "within"),
    [("0.29.5", False), ("0.30.0", True), ("0.31.9", True), ("0.32.0", False), ("1.0.0", False)],
)
def test_within_counts_minors_from_the_first_to_before_the_last(release: str, within: bool) -> None:
    parsed = Release.parse(release)
    assert parsed.is_within(Release(0, 30, 1), Release(0, 32, 4)) is within
    assert parsed.is_within(Release(0, 30)) is (within or release in ("0.32.0", "1.0.0"))
