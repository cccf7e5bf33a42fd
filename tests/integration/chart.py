"""The chart's objects as data, and what they allow."""

import subprocess
from collections.abc import Iterator
from typing import Any

import yaml

from hack.cluster.kubectl import Object
from hack.demo_cluster.helm import CHART, helm

Grant = tuple[str, str, str]
"""API group, resource, verb."""


def rendered(*options: str, namespace: str = "epd-system") -> list[Object]:
    """What `helm template` prints."""
    command = [str(helm()), "template", "epd-operator", str(CHART), f"--namespace={namespace}", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def documents(text: str) -> list[Object]:
    """The objects of a YAML stream."""
    return [body for body in yaml.load_all(text, yaml.CSafeLoader) if body]


def of_kind(objects: list[Object], kind: str) -> dict[str, Object]:
    """Objects of one kind by name."""
    return {body["metadata"]["name"]: body for body in objects if body["kind"] == kind}


def granted(objects: list[Object], account: str) -> set[Grant]:
    """What roles allow a service account, wherever it is bound."""
    return {grant for rule in _rules(objects, account) for grant in _grants(rule)}


def _rules(objects: list[Object], account: str) -> Iterator[dict[str, Any]]:
    for binding in objects:
        if binding["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        if account in [subject["name"] for subject in binding["subjects"]]:
            reference = binding["roleRef"]
            yield from of_kind(objects, reference["kind"])[reference["name"]]["rules"]


def _grants(rule: dict[str, Any]) -> Iterator[Grant]:
    for group in rule["apiGroups"]:
        for resource in rule["resources"]:
            for verb in rule["verbs"]:
                yield group, resource, verb
