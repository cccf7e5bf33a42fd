"""The proxy's wires and the operator's releases are two tables that must agree."""

from pathlib import Path

from epd_proxy.wire import WIRES

RELEASES = Path(__file__).parents[3] / "operator" / "epd_operator" / "engine" / "releases"


def test_every_release_of_the_operator_has_a_wire() -> None:
    known = {path.stem for path in RELEASES.glob("0.*.json")}
    assert known
    assert known <= WIRES.keys()


def test_the_proxy_alone_talks_to_older_releases_too() -> None:
    assert sorted(WIRES) == [f"0.{minor}" for minor in range(24, 34)]
