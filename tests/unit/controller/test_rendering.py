"""Kept renderings: the same when they come back, and silent about what scales."""

from typing import Any

import pytest

from epd_operator.cluster.resources import Object
from epd_operator.controller.rendering import (
    Content,
    controller_revision,
    keep_rendering,
    spec_digest,
    unscaled,
    without_replicas,
)

OWNER = {"kind": "EPDDeployment", "name": "v", "uid": "u", "controller": True}
INSTANCE: Object = {"metadata": {"name": "v", "namespace": "n"}}
LABELS = {"app.kubernetes.io/component": "decode", "epd.dev/revision": "r"}
OBJECTS: tuple[Object, ...] = (
    {"kind": "Service", "metadata": {"name": "s", "labels": {}}, "spec": {"ü": "<&>"}},
    {"kind": "Deployment", "metadata": {"name": "d", "labels": LABELS}, "spec": {"template": {}}},
)


def revision(number: int = 1) -> Object:
    content = Content({"decode": {}}, "asked", {"revision": "r"}, OBJECTS)
    body = controller_revision(content, INSTANCE, OWNER, number)
    return {**body, "metadata": {**body["metadata"], "uid": "x", "resourceVersion": "5"}}


def test_what_was_kept_comes_back() -> None:
    kept = keep_rendering(revision())
    assert kept.content() == Content({"decode": {}}, "asked", {"revision": "r"}, OBJECTS)
    assert (kept.number, kept.instance, kept.revision, kept.version) == (1, "v", "r", 5)
    assert kept.owner is not None
    assert kept.owner.uid == "u"
    assert kept.spec_digest == spec_digest({"decode": {}}, "asked")
    assert [(piece.key, piece.component, piece.revision) for piece in kept.pieces] == [
        (("Service", "s"), "", None),
        (("Deployment", "d"), "decode", "r"),
    ]


def test_its_name_tells_content_and_number() -> None:
    names = {revision(number)["metadata"]["name"] for number in (1, 1, 2)}
    assert len(names) == 2


@pytest.mark.parametrize(
    "spec",
    [
        {"decode": {"replicas": 3}},
        {"decode": {}, "suspend": True},
        {"decode": {}, "preflight": "Enforce"},
        {"decode": {"replicas": 1}, "suspend": False},
    ],
)
def test_what_scales_is_no_part_of_it(spec: dict[str, Any]) -> None:
    assert unscaled(spec) == {"decode": {}}


def test_objects_are_kept_without_replicas() -> None:
    body = {"kind": "Deployment", "spec": {"replicas": 3, "template": {}}}
    other = {"kind": "Service", "spec": {"replicas": 3}}
    assert without_replicas([body, other]) == ({"kind": "Deployment", "spec": {"template": {}}}, other)
    assert body["spec"] == {"replicas": 3, "template": {}}
