"""Fixtures that need the real vLLM."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack import engine_env
from hack.vllm import fetch
from tests.conformance import models
from tests.conformance.oracle import PLATFORMS, Oracle, oracle

JUDGES = [f"{release}-{platform}" for release in fetch.pinned() for platform in PLATFORMS]


def missing(reason: str) -> None:
    """A prerequisite is not there: a failure in CI, elsewhere a test left out with its reason."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with a configuration for every model of `models.py`, by name."""
    return models.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="session", params=JUDGES)
def judge(request: pytest.FixtureRequest) -> Iterator[Oracle]:
    """Each release on each platform in turn; pytest runs all tests of one before the next starts."""
    release, _, platform = request.param.partition("-")
    try:
        with oracle(release, platform) as started:
            yield started
    except (fetch.FetchError, engine_env.EngineEnvironmentError) as error:
        missing(f"vLLM {release} cannot be asked: {error}")
