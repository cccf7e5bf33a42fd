"""What a manager owns in an object, and whether it is what it wants."""

import copy
from typing import Any

import pytest

from epd_operator.cluster.ownership import as_wanted

WANTED: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a", "labels": {"app": "a"}},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "engine",
                        "args": ["x", "y"],
                        "env": [{"name": "A", "value": "1"}],
                        "resources": {"limits": {"cpu": "0.5"}},
                        "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    }
                ],
                "volumes": [{"name": "cache", "emptyDir": {}}],
            }
        },
    },
}
FIELDS: dict[str, Any] = {
    "f:metadata": {"f:labels": {"f:app": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:selector": {},
        "f:template": {
            "f:spec": {
                "f:containers": {
                    'k:{"name":"engine"}': {
                        ".": {},
                        "f:name": {},
                        "f:args": {},
                        "f:env": {'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
                        "f:resources": {"f:limits": {"f:cpu": {}}},
                        "f:ports": {
                            'k:{"containerPort":80,"protocol":"TCP"}': {
                                ".": {},
                                "f:containerPort": {},
                                "f:protocol": {},
                            }
                        },
                    }
                },
                "f:volumes": {'k:{"name":"cache"}': {".": {}, "f:name": {}, "f:emptyDir": {}}},
            }
        },
    },
}


def live() -> dict[str, Any]:
    """The object as the API server has it: defaults, canonical quantities, and the accounts of two managers."""
    body = copy.deepcopy(WANTED)
    container = body["spec"]["template"]["spec"]["containers"][0]
    container |= {"imagePullPolicy": "Always", "resources": {"limits": {"cpu": "500m"}}}
    body["spec"]["strategy"] = {"type": "RollingUpdate"}
    body["metadata"] |= {
        "uid": "u",
        "resourceVersion": "7",
        "managedFields": [
            {"manager": "me", "operation": "Apply", "fieldsV1": copy.deepcopy(FIELDS)},
            {"manager": "me", "subresource": "status", "fieldsV1": {"f:status": {"f:x": {}}}},
            {"manager": "other", "fieldsV1": {"f:metadata": {"f:annotations": {"f:note": {}}}}},
        ],
    }
    body["metadata"]["annotations"] = {"note": "theirs"}
    body["status"] = {"x": 1}
    return body


def container(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = body["spec"]["template"]["spec"]["containers"][0]
    return found


def mine(body: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = body["metadata"]["managedFields"][0]["fieldsV1"]
    return found


def test_defaults_quantities_and_what_others_add_do_not_count() -> None:
    body = live()
    container(body)["env"].append({"name": "THEIRS", "value": "x"})
    container(body)["env"].reverse()
    assert as_wanted(body, WANTED, "me")
    assert not as_wanted(body, WANTED, "somebody")


def _value(body: dict[str, Any]) -> None:
    container(body)["env"][0]["value"] = "2"


def _number(body: dict[str, Any]) -> None:
    body["spec"]["replicas"] = 3


def _text_like_a_quantity(body: dict[str, Any]) -> None:
    container(body)["env"][0]["value"] = "1.0"


def _atomic(body: dict[str, Any]) -> None:
    container(body)["args"] = ["x", "y", "z"]


def _selector(body: dict[str, Any]) -> None:
    body["spec"]["selector"] = {"matchLabels": {"app": "b"}}


def _removed(body: dict[str, Any]) -> None:
    del body["metadata"]["labels"]["app"]


def _taken_over(body: dict[str, Any]) -> None:
    del mine(body)["f:spec"]["f:replicas"]


def _applied_once_and_wanted_no_more(body: dict[str, Any]) -> None:
    container(body)["env"].append({"name": "OLD", "value": "x"})
    fields = mine(body)["f:spec"]["f:template"]["f:spec"]["f:containers"]['k:{"name":"engine"}']
    fields["f:env"]['k:{"name":"OLD"}'] = {".": {}, "f:name": {}, "f:value": {}}


CHANGES = [
    _value,
    _number,
    _text_like_a_quantity,
    _atomic,
    _selector,
    _removed,
    _taken_over,
    _applied_once_and_wanted_no_more,
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_an_owned_field_counts(change: Any) -> None:
    body = live()
    change(body)
    assert not as_wanted(body, WANTED, "me")


def test_defaults_inside_an_atomic_value_do_not_count() -> None:
    wanted = {"metadata": {"name": "p"}, "spec": {"ingress": [{"ports": [{"port": 80}]}]}}
    body = {
        "metadata": {"name": "p", "managedFields": [{"manager": "me", "fieldsV1": {"f:spec": {"f:ingress": {}}}}]},
        "spec": {"ingress": [{"ports": [{"port": 80, "protocol": "TCP"}]}]},
    }
    assert as_wanted(body, wanted, "me")
    body["spec"]["ingress"].append({})  # type: ignore[index]
    assert not as_wanted(body, wanted, "me")


def test_a_creation_and_an_application_are_one_manager() -> None:
    body = {
        "metadata": {
            "name": "c",
            "managedFields": [
                {"manager": "me", "operation": "Update", "fieldsV1": {"f:data": {".": {}, "f:a": {}}}},
                {"manager": "me", "operation": "Apply", "fieldsV1": {"f:data": {"f:b": {}}}},
            ],
        },
        "data": {"a": "1", "b": "2"},
    }
    assert as_wanted(body, {"metadata": {"name": "c"}, "data": {"a": "1", "b": "2"}}, "me")
