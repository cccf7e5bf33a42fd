from typing import Any

import pytest

from epd_operator.api.podspec import Unfit, fields, unfit


def found(spec: dict[str, Any]) -> list[tuple[str, str]]:
    """Place, and the unknown field or what is wanted."""
    return [(wrong.path, wrong.field or wrong.wanted) for wrong in unfit(spec, "spec", "engine")]


def test_the_table_is_that_of_a_pod_and_closed() -> None:
    known = fields()
    assert known.types["PodSpec"]["containers"] == "[Container]"
    assert known.types["PodSpec"]["nodeSelector"] == "{string}"
    assert known.types["EmptyDirVolumeSource"]["sizeLimit"] == "quantity"
    named = {kind.strip("[]{}") for types in known.types.values() for kind in types.values()}
    scalars = {"string", "integer", "number", "boolean", "quantity", "int-or-string", "object"}
    assert named <= known.types.keys() | scalars
    assert known.required["HTTPGetAction"] == ("port",)


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodeSelector": None, "tolerations": [{"key": "a", "tolerationSeconds": 3}]},
        {"volumes": [{"name": "a", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "b", "csi": {"driver": "d"}}]},
        {"containers": [{"name": "engine", "lifecycle": {"preStop": {"httpGet": {"path": "/"}}}}]},
        {"containers": [{"name": "log", "image": "x", "ports": [{"containerPort": 1, "$patch": "delete"}]}]},
    ],
)
def test_what_the_api_server_takes(spec: dict[str, Any]) -> None:
    assert found(spec) == []


@pytest.mark.parametrize(
    ("spec", "place", "what"),
    [
        ({"nodeSelektor": {}}, "spec.nodeSelektor", "nodeSelektor"),
        ({"affinity": {"nodeAfinity": {}}}, "spec.affinity.nodeAfinity", "nodeAfinity"),
        ({"affinity": []}, "spec.affinity", "an object"),
        ({"tolerations": "x"}, "spec.tolerations", "a list"),
        ({"tolerations": ["x"]}, "spec.tolerations[0]", "an object"),
        ({"nodeSelector": {"a": 1}}, "spec.nodeSelector.a", "text"),
        ({"shareProcessNamespace": "yes"}, "spec.shareProcessNamespace", "true or false"),
        ({"priority": 1.5}, "spec.priority", "a whole number"),
        ({"volumes": [{"name": "a", "emptyDir": {"sizeLimit": []}}]}, "spec.volumes[0].emptyDir.sizeLimit", "a qu"),
        ({"containers": [{"name": "log"}]}, "spec.containers[0]", "an object with image"),
        ({"initContainers": [{"name": "engine"}]}, "spec.initContainers[0]", "an object with image"),
    ],
)
def test_what_it_refuses(spec: dict[str, Any], place: str, what: str) -> None:
    [(path, wanted)] = found(spec)
    assert path == place
    assert wanted.startswith(what)


def test_the_parent_is_named() -> None:
    assert list(unfit({"volumes": [{"name": "a", "emptydir": {}}]}, "spec", "engine")) == [
        Unfit("spec.volumes[0].emptydir", {}, "Volume", "emptydir")
    ]
