"""What is added to a rendered object, and that each addition is seen in its digest."""

import pytest

from epd_operator.controller.form import Form
from epd_operator.controller.traffic import NEVER, Traffic

DEPLOYMENT = {"kind": "Deployment", "metadata": {"labels": {}}, "spec": {"paused": True, "minReadySeconds": 10}}


def test_a_form_changes_what_it_says_and_nothing_else() -> None:
    plain = Form().on(DEPLOYMENT)
    assert plain == DEPLOYMENT
    done = Form(replicas=2, desired=3, begins=True).on(DEPLOYMENT)
    assert done == {
        "kind": "Deployment",
        "metadata": {"labels": {}, "annotations": {"epd.dev/desired-replicas": "3"}},
        "spec": {"minReadySeconds": 10, "replicas": 2},
    }
    assert Form(first=True).on(DEPLOYMENT)["spec"] == {"paused": True}
    assert DEPLOYMENT["spec"] == {"paused": True, "minReadySeconds": 10}


def test_each_form_has_its_digest_but_for_replicas() -> None:
    forms = [
        Form(),
        Form(desired=0),
        Form(desired=1),
        Form(traffic=NEVER),
        Form(traffic=Traffic(open=False, ended="2026-01-01T00:00:00Z")),
        Form(begins=True),
        Form(first=True),
        Form(begins=True, first=True),
    ]
    assert len({form.digest("d") for form in forms}) == len(forms)
    assert Form().digest("d") == "d"


@pytest.mark.parametrize("replicas", [0, 7])
def test_replicas_are_compared_themselves(replicas: int) -> None:
    assert Form(replicas).digest("d") == "d"
