"""A vLLM release, as versions and image tags write it."""

import re
from typing import NamedTuple

_VERSION = re.compile(
    r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:(?:\.?(?:rc|a|b|dev|post)\d*)+)?(?:[+-][A-Za-z0-9._+-]*)?", re.ASCII
)

_PRE_RELEASE = re.compile(r"\d\.?(rc|a|b|dev)\d*", re.ASCII)


class Release(NamedTuple):
    """major.minor.patch. Pre-releases and builds (rc1, +cpu, -cu130) count as their release."""

    major: int
    minor: int
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> "Release":
        """Read `0.33.0`, `v0.33`, `0.33.0rc1` or `0.32.0+cpu`; ValueError for anything else."""
        match = _VERSION.fullmatch(text) if len(text) <= 64 else None
        if match is None:
            raise ValueError(f"{text[:64]!r} is not a vLLM release such as 0.33.0")
        return cls(int(match[1]), int(match[2]), int(match[3] or 0))

    @classmethod
    def of_image(cls, image: str) -> "Release | None":
        """The release that an image's tag names, None where it names none."""
        _, _, last = image.partition("@")[0].rpartition("/")
        _, colon, tag = last.partition(":")
        try:
            return cls.parse(tag) if colon else None
        except ValueError:
            return None

    @staticmethod
    def is_pre_release(text: str) -> bool:
        """Whether a version is one on the way to a release (rc, a, b, dev), for which no image is published."""
        return _PRE_RELEASE.search(text.partition("+")[0]) is not None

    @property
    def minor_text(self) -> str:
        """major.minor, the granularity of rules and wire formats."""
        return f"{self.major}.{self.minor}"

    @property
    def minor_key(self) -> tuple[int, int]:
        """Major and minor, for comparisons."""
        return self.major, self.minor

    def is_within(self, since: "Release", until: "Release | None" = None) -> bool:
        """Whether it comes with or after `since` and before `until`; patches count as their minor."""
        return self.minor_key >= since.minor_key and (until is None or self.minor_key < until.minor_key)

    def __str__(self) -> str:
        """major.minor.patch."""
        return f"{self.major}.{self.minor}.{self.patch}"


OLDEST = Release(0, 28)
"""Oldest release whose encoders report metadata; the operator supports this one and later."""
