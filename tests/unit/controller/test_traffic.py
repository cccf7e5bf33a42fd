"""Whether a revision gets requests, as its Service keeps it."""

import pytest

from epd_operator.api import names
from epd_operator.cluster.resources import SERVICES, Object
from epd_operator.controller.child import keep_child
from epd_operator.controller.traffic import NEVER, OPEN, Traffic, keeps_traffic, traffic_of

NOW, EARLIER = "2026-01-01T00:00:10Z", "2026-01-01T00:00:00Z"
ENDED = Traffic(open=False, ended=EARLIER)
SERVICE: Object = {"kind": "Service", "metadata": {"name": "s", "uid": "u", "labels": {"a": "b"}}}


@pytest.mark.parametrize("traffic", [OPEN, NEVER, ENDED])
def test_what_is_written_is_what_is_read(traffic: Traffic) -> None:
    written = traffic.on(SERVICE)
    assert traffic_of(keep_child(SERVICES, written, None)) == traffic
    assert written["metadata"]["labels"]["a"] == "b"
    assert "annotations" not in SERVICE["metadata"]  # it made a new one


@pytest.mark.parametrize(
    ("before", "serves", "after"),
    [
        (OPEN, True, OPEN),
        (OPEN, False, Traffic(open=False, ended=NOW)),
        (NEVER, False, NEVER),
        (NEVER, True, OPEN),
        (ENDED, False, ENDED),  # the moment stays
        (ENDED, True, OPEN),
    ],
)
def test_what_it_says_next(before: Traffic, serves: bool, after: Traffic) -> None:
    assert before.then(serves=serves, now=NOW) == after


@pytest.mark.parametrize("text", ["", "yesterday", "2026-01-01T00:00:00"])
def test_what_somebody_wrote_is_no_moment(text: str) -> None:
    metadata = {**SERVICE["metadata"], "labels": {names.LABEL_TRAFFIC: names.NO_TRAFFIC}}
    metadata["annotations"] = {names.ANNOTATION_TRAFFIC_ENDED: text}
    assert traffic_of(keep_child(SERVICES, {**SERVICE, "metadata": metadata}, None)) == NEVER


def test_one_service_speaks_for_a_revision() -> None:
    assert keeps_traffic("Service", "decode")
    assert not keeps_traffic("Service", "encode")
    assert not keeps_traffic("Deployment", "decode")
