"""The committed capability tables are what the releases themselves say."""

import json
from typing import Any

import pytest

from hack import engine_env
from hack.vllm import fetch, table
from tests.conformance.conftest import missing

pytestmark = pytest.mark.conformance
STATIC = (
    "version",
    "env",
    "ec_connectors",
    "kv_connectors",
    "deprecated",
    "architectures",
    "metadata_items",
    "metrics",
    "routes",
    "wire",
)


def committed(minor: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((table.TABLES / f"{minor}.json").read_text(encoding="utf-8"))
    return loaded


def test_every_pinned_release_has_a_table() -> None:
    assert sorted(path.stem for path in table.TABLES.glob("*.json")) == fetch.pinned()


@pytest.mark.parametrize("minor", fetch.pinned())
def test_sources_say_the_same(minor: str) -> None:
    try:
        folder = fetch.ensure(minor)
    except (fetch.FetchError, engine_env.EngineEnvironmentError) as error:
        missing(f"vLLM {minor} cannot be read: {error}")
    read = json.loads(json.dumps(table.static_part(folder / "vllm")))
    assert read == {key: committed(minor)[key] for key in STATIC}


@pytest.mark.parametrize("minor", [fetch.installed_minor(), fetch.pinned()[-1]])
def test_the_parser_itself_says_the_same(minor: str) -> None:
    try:
        made = table.make(minor)
    except (fetch.FetchError, engine_env.EngineEnvironmentError) as error:
        missing(f"vLLM {minor} cannot be asked: {error}")
    assert made == (table.TABLES / f"{minor}.json").read_text(encoding="utf-8")
