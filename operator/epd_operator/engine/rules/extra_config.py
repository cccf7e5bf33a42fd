"""Rules about extraConfig, vLLM's own settings of a connector."""

from collections.abc import Iterator
from typing import NamedTuple

from epd_operator.api.fields import path_of
from epd_operator.api.finding import Severity
from epd_operator.engine import connectors
from epd_operator.engine.capabilities import nearest
from epd_operator.engine.rules.rule import Broken, Kind, rule
from epd_operator.engine.wiring import TransferChoice, Wiring

WIRED = ("shared_storage_path",)
"""Keys that the operator writes."""


class _Settings(NamedTuple):
    """One transfer, and the keys that the release's connector reads."""

    choice: TransferChoice
    known: frozenset[str]


def _settings(wiring: Wiring) -> Iterator[_Settings]:
    """Each transfer by a connector that this operator knows by name: others may pass keys on to what they load."""
    release = wiring.capabilities
    if wiring.embeddings is not None and wiring.embeddings.connector in connectors.EMBEDDINGS:
        yield _Settings(wiring.embeddings, release.ec_connectors.get(wiring.embeddings.connector, frozenset()))
    if wiring.kv is not None and wiring.kv.connector in connectors.KV:
        yield _Settings(wiring.kv, release.kv_connectors.get(wiring.kv.connector, frozenset()))


@rule(
    id="extra-config-clash-with-wiring",
    severity=Severity.ERROR,
    kind=Kind.STRICTER,
    what="extraConfig does not set what the operator sets so that the roles meet.",
    why="The directory would not be the one that both roles mount: nothing is transferred, without any error.",
    source="the plan",
)
def clash_with_wiring(wiring: Wiring) -> Iterator[Broken]:
    """The shared directory, named by the user."""
    for choice, known in _settings(wiring):
        for key in (key for key in WIRED if key in choice.extra and key in known):
            message = "the operator sets it to the directory where it mounts the claim"
            remedy = f"remove it and set {choice.path.removeprefix('spec.')}.volume"
            yield Broken(f"{choice.path}.extraConfig.{key}", choice.extra[key], message, remedy)


@rule(
    id="extra-config-key-unknown",
    severity=Severity.WARNING,
    kind=Kind.SILENT,
    what="Every key of extraConfig is one that the connector reads.",
    why="vLLM ignores others without a word.",
    source="the sources of the connectors, each release",
    needs_release=True,
    proved=True,
)
def key_unknown(wiring: Wiring) -> Iterator[Broken]:
    """A key that no line of the connector reads."""
    for choice, known in _settings(wiring):
        for key in (key for key in choice.extra if known and key not in known):
            near = nearest(key, known)
            message = f"{choice.connector} of vLLM {wiring.release} reads no such key and ignores it without a word"
            remedy = f"rename it to {near}" if near else f"remove it, or use one of {', '.join(sorted(known))}"
            path = f"{choice.path}.{path_of(('extraConfig', key))}"
            yield Broken(path, choice.extra[key], message, remedy)


RULES = (clash_with_wiring, key_unknown)
