"""What is kept of a child: its content until it was seen to be right, and rightness until the content changes."""

import copy
from collections.abc import Callable

import pytest

from epd_operator.cluster.resources import CONFIG_MAPS, DEPLOYMENTS, Object
from epd_operator.controller.child import keep_child


def deployment() -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "v-encode",
            "namespace": "n",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 2,
            "labels": {"app.kubernetes.io/instance": "v"},
            "ownerReferences": [{"kind": "EPDDeployment", "name": "v", "uid": "o", "controller": True}],
        },
        "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "engine", "args": ["é", 1.5, None]}]}}},
    }


def test_the_content_is_there_until_it_was_seen_to_be_right() -> None:
    child = keep_child(DEPLOYMENTS, deployment(), None)
    assert (child.body, child.right_as) == (deployment(), "")
    child = keep_child(DEPLOYMENTS, deployment(), None)
    child.is_right("digest")
    assert (child.body, child.right_as) == (None, "digest")


def test_a_change_of_the_status_alone_leaves_it_right() -> None:
    before = keep_child(DEPLOYMENTS, deployment(), None)
    before.is_right("digest")
    body = deployment()
    body["metadata"] |= {"resourceVersion": "8", "annotations": {"deployment.kubernetes.io/revision": "3"}}
    body["status"] = {"readyReplicas": 2, "observedGeneration": 2}
    after = keep_child(DEPLOYMENTS, body, before)
    assert (after.body, after.right_as) == (None, "digest")
    assert after.workload is not None
    assert after.workload.ready == 2


CHANGES: dict[str, Callable[[Object], object]] = {
    "spec": lambda body: body["metadata"].update(generation=3),
    "label": lambda body: body["metadata"]["labels"].update({"app.kubernetes.io/name": "other"}),
    "annotation": lambda body: body["metadata"].update(annotations={"epd.dev/template-hash": "other"}),
    "owner": lambda body: body["metadata"].update(ownerReferences=[]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_other_change_is_looked_at(change: str) -> None:
    before = keep_child(DEPLOYMENTS, deployment(), None)
    before.is_right("digest")
    body = copy.deepcopy(deployment())
    CHANGES[change](body)
    after = keep_child(DEPLOYMENTS, body, before)
    assert (after.body, after.right_as) == (body, "")


def test_without_a_generation_every_change_is_looked_at() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "namespace": "n", "uid": "u"},
        "data": {},
    }
    before = keep_child(CONFIG_MAPS, body, None)
    before.is_right("digest")
    assert keep_child(CONFIG_MAPS, {**body, "data": {"a": "b"}}, before).body == {**body, "data": {"a": "b"}}
