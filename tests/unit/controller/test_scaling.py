"""How many instances of what."""

from typing import Any

import pytest

from epd_operator.controller.scaling import Scale, keep_scale, scale_status, wanted


def scale(count: int, **status: Any) -> Scale:
    return keep_scale(
        {
            "metadata": {"name": "v-encode", "namespace": "n", "uid": "u", "generation": 3, "resourceVersion": "9"},
            "spec": {"deployment": "v", "role": "encode", "replicas": count},
            "status": status,
        }
    )


EXTERNAL = {"encode": {"scaling": {"mode": "External"}}, "decode": {}}
CASES: list[tuple[str, dict[str, Any], dict[str, Scale], dict[str, int], dict[str, int]]] = [
    ("defaults", {"decode": {}}, {}, {}, {"decode": 1, "proxy": 2}),
    ("as written", {"decode": {"replicas": 0}, "proxy": {"replicas": 3}}, {}, {}, {"decode": 0, "proxy": 3}),
    ("by an autoscaler", EXTERNAL, {"encode": scale(5)}, {"encode": 1}, {"encode": 5, "decode": 1, "proxy": 2}),
    ("to nothing", EXTERNAL, {"encode": scale(0)}, {"encode": 4}, {"encode": 0, "decode": 1, "proxy": 2}),
    ("until it can", EXTERNAL, {}, {"encode": 4}, {"encode": 4, "decode": 1, "proxy": 2}),
    ("from the beginning", EXTERNAL, {}, {}, {"encode": 1, "decode": 1, "proxy": 2}),
    ("not asked", {"decode": {"replicas": 2}}, {"decode": scale(9)}, {}, {"decode": 2, "proxy": 2}),
    ("suspended", {"suspend": True, "decode": {"replicas": 2}}, {}, {"decode": 2}, {"decode": 0, "proxy": 0}),
]


@pytest.mark.parametrize(("spec", "scales", "live", "counts"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_wanted(spec: dict[str, Any], scales: dict[str, Scale], live: dict[str, int], counts: dict[str, int]) -> None:
    assert wanted(spec, scales, live) == counts


def test_its_status_is_written_when_it_changed() -> None:
    selector = {"b": "2", "a": "1"}
    status = scale_status(scale(2), 1, selector)
    assert status == {"observedGeneration": 3, "replicas": 1, "selector": "a=1,b=2"}
    assert scale_status(scale(2, **status), 1, selector) is None
    assert scale_status(scale(2, **status), 2, selector) is not None
