"""A cluster with real nodes: the one that `make cluster` brought up, else a local one for this run.

Of these tests `make test` runs those that are marked `smoke`, where the machine can be a node; `make e2e` runs all.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hack.cluster.__main__ import DIRECTORY
from hack.cluster.ability import obstacle
from hack.cluster.cache import cache_directory
from hack.cluster.errors import ClusterError, MissingPrerequisite
from hack.cluster.kubectl import Kubectl
from hack.cluster.local import temporary_node
from hack.cluster.node import require_node_programs
from hack.cluster.provider import Local, Provider, chosen
from hack.cluster.settings import Layout
from hack.demo_cluster.installation import Installation
from hack.demo_cluster.volumes import Volumes
from hack.images.builder import builder
from tests.integration.conftest import absent

FREE_BYTES = 20 << 30
"""An image of vLLM for CPUs, 6.4 GB, lies in the builder's store and on the node, and is unpacked in between."""
MEMORY_BYTES = 6 << 30
NOT_RUN = pytest.StashKey[str]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where no path was named, as by `make test`, only the smoke tests are for this folder to add."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    left_out = [item for item in items if item.get_closest_marker("e2e") and not item.get_closest_marker("smoke")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say aloud that no pod was run."""
    if reason := config.stash.get(NOT_RUN, ""):
        terminalreporter.section("NO POD WAS RUN: this machine cannot be a node", red=True, bold=True)
        terminalreporter.line(reason)


@pytest.fixture(scope="session")
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    """Who provides the cluster.

    What can be installed is required, in CI. What the kernel refuses cannot be had: then the tests are left out, aloud.
    """
    directory = Path(os.environ.get("EPD_CLUSTER") or DIRECTORY).resolve()
    standing = chosen(directory).provider(directory)
    if _answers(standing):
        yield standing
        return
    directory = cache_directory() / "node"
    if os.geteuid() == 0:
        try:
            require_node_programs(Layout(directory))
            builder()
        except MissingPrerequisite as missing:
            absent(str(missing))
    if reason := obstacle(directory, FREE_BYTES, MEMORY_BYTES):
        request.config.stash[NOT_RUN] = reason
        pytest.skip(reason)

    def report(line: str) -> None:
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n{line}", flush=True)  # noqa: T201  a build takes minutes: say so

    with temporary_node(directory, report):
        yield Local(directory)


def _answers(provider: Provider) -> bool:
    try:
        provider.reach().kubectl("get", "--raw=/readyz")
    except ClusterError:
        return False
    return True


@pytest.fixture(scope="session")
def kubectl(provider: Provider) -> Kubectl:
    """Run kubectl as the cluster's administrator."""
    return provider.reach().kubectl


@pytest.fixture(scope="session")
def installed(provider: Provider) -> Installation:
    """The operator of these sources, installed by Helm."""
    installation = Installation.on(provider)
    installation.install()
    return installation


@contextmanager
def new_namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace with restricted pod security. It is deleted afterwards, without waiting."""
    name = f"epd-e2e-{secrets.token_hex(3)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}])
    kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=30s")
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of the test's own."""
    with new_namespace(kubectl) as name:
        yield name


@pytest.fixture
def volumes(installed: Installation, namespace: str) -> Iterator[Volumes]:
    """Makes claims in the test's namespace; they go with what is in them."""
    made = Volumes(installed.provider, installed.kubectl)
    yield made
    made.remove(namespace)
