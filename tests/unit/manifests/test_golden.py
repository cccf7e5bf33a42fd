"""What examples render as is kept, so that every change of it is seen in a review. `make golden` writes it anew."""

import pytest

from hack.golden import GOLDEN, renderings

RENDERINGS = renderings()


@pytest.mark.parametrize("name", sorted(RENDERINGS))
def test_an_example_renders_as_it_did(name: str) -> None:
    kept = GOLDEN / name
    assert kept.exists(), f"no rendering of {name} is kept yet: run make golden"
    assert RENDERINGS[name] == kept.read_text(), "run make golden, and read what git says of it"


def test_no_rendering_is_kept_of_what_is_no_example() -> None:
    assert {file.name for file in GOLDEN.iterdir()} == set(RENDERINGS)
    assert len(RENDERINGS) >= 4
