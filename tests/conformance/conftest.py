"""Fixtures that need the real vLLM."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hack import engine_env
from hack.vllm import fetch
from tests.conformance import models
from tests.conformance.oracle import Oracle, oracle


def missing(reason: str) -> None:
    """A prerequisite is not there: a failure in CI, elsewhere a test left out with its reason."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder with a configuration for every model of `models.py`, by name."""
    return models.write(tmp_path_factory.mktemp("models"))


class Judges:
    """One release, its platforms started when they are first asked for."""

    def __init__(self, release: str, stack: ExitStack) -> None:
        """`stack` ends the processes."""
        self.release = release
        self._stack = stack
        self._started: dict[str, Oracle] = {}

    def __getitem__(self, platform: str) -> Oracle:
        """The release on `cuda` or `cpu`."""
        if platform not in self._started:
            self._started[platform] = self._stack.enter_context(oracle(self.release, platform))
        return self._started[platform]


@pytest.fixture(scope="session", params=fetch.pinned())
def judges(request: pytest.FixtureRequest) -> Iterator[Judges]:
    """Each release in turn; pytest runs all tests of one before the next starts."""
    try:
        fetch.ensure(request.param)
        engine_env.ensure()
    except (fetch.FetchError, engine_env.EngineEnvironmentError) as error:
        missing(f"vLLM {request.param} cannot be asked: {error}")
    with ExitStack() as stack:
        yield Judges(request.param, stack)
