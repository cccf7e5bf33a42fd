"""Objects for tests: the smallest valid one, and patches on it written as YAML."""

import copy
from collections.abc import Mapping
from typing import Any

import yaml as pyyaml

from epd_operator.api.deployment import EPDDeployment
from epd_operator.api.finding import Finding
from epd_operator.api.parse import parse
from epd_operator.engine.rules import check
from epd_operator.engine.wiring import Wiring, wire

ABSENT = "<absent>"
"""In a patch: the field is removed."""
MINIMAL: dict[str, Any] = {
    "apiVersion": "epd.dev/v1alpha1",
    "kind": "EPDDeployment",
    "metadata": {"name": "m"},
    "spec": {
        "model": {"id": "Qwen/Qwen3-VL-8B-Instruct"},
        "engine": {"version": "0.33.0"},
        "encode": {},
        "decode": {},
    },
}


def yaml(text: str) -> Any:
    """What a YAML text says."""
    return pyyaml.safe_load(text)


def document(*specs: str, name: str = "m") -> dict[str, Any]:
    """The smallest valid document with patches on its spec."""
    result = merged(MINIMAL, {"metadata": {"name": name}})
    for spec in specs:
        result = merged(result, {"spec": yaml(spec) or {}})
    return result


def merged(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`patch` over `base`: objects merge, everything else replaces."""
    result = copy.deepcopy(dict(base))
    for key, value in patch.items():
        if value == ABSENT:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


def deployment(*specs: str, name: str = "m") -> EPDDeployment:
    """A valid object with patches on its spec; fails where its shape is wrong."""
    parsed = parse(document(*specs, name=name))
    assert parsed.deployment is not None, [str(finding) for finding in parsed.findings]
    return parsed.deployment


def wiring(*specs: str, name: str = "m", local: bool = False, config: Mapping[str, Any] | None = None) -> Wiring:
    """The object as vLLM sees it; `config` is the model's config.json."""
    return wire(deployment(*specs, name=name), local=local, model_config=config)


def findings(
    *specs: str, name: str = "m", local: bool = False, config: Mapping[str, Any] | None = None
) -> list[Finding]:
    """Everything that is found in the object, as `epd validate` does."""
    parsed = parse(document(*specs, name=name))
    found = list(parsed.findings)
    if parsed.deployment is not None:
        found += check(wire(parsed.deployment, local=local, model_config=config))
    return found
