"""Rules about names."""

import re
from collections.abc import Iterator

from epd_operator.api import names
from epd_operator.api.finding import Severity
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import Wiring

_DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


@rule(
    id="name-too-long",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what=f"metadata.name has at most {names.MAX_NAME} characters.",
    why="Services of the roles derive from it and have at most 63.",
    source="Kubernetes: object names (RFC 1123 labels)",
)
def name_too_long(wiring: Wiring) -> Iterator[Broken]:
    """The longest derived name would be too long."""
    name = wiring.deployment.name
    if len(name) > names.MAX_NAME:
        message = (
            f"has {len(name)} characters; with -prefill- and an {names.REVISION_LENGTH} character revision the longest "
            f"name has {len(name) + names.LONGEST_SUFFIX} and Kubernetes allows {names.MAX_LABEL}"
        )
        yield Broken("metadata.name", name, message, f"use at most {names.MAX_NAME} characters")


@rule(
    id="name-not-a-label",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="metadata.name is a DNS label that begins with a letter.",
    why="Services are named after it; the API server would refuse them.",
    source="Kubernetes: object names (RFC 1035 labels)",
)
def name_not_a_label(wiring: Wiring) -> Iterator[Broken]:
    """Dots, or a digit first."""
    name = wiring.deployment.name
    if not _DNS_LABEL.fullmatch(name):
        message = "Services are named after it, and their names begin with a letter and have no dots"
        yield Broken("metadata.name", name, message, "use lower-case letters, digits and dashes, a letter first")


@rule(
    id="name-begins-with-vllm",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="metadata.name does not begin with vllm.",
    why="Kubelet gives all pods of the namespace variables named after Services, and vLLM reads VLLM_* as settings.",
    source="vLLM envs.py (VLLM_PORT); Kubernetes: environment variables of Services",
)
def name_begins_with_vllm(wiring: Wiring) -> Iterator[Broken]:
    """Services named vllm..."""
    name = wiring.deployment.name
    if name.startswith("vllm"):
        message = "Services named vllm... put VLLM_* variables into all pods of the namespace, and vLLM reads them"
        yield Broken("metadata.name", name, message, "use a name that does not begin with vllm")


RULES = (name_not_a_label, name_too_long, name_begins_with_vllm)
