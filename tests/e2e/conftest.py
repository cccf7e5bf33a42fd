"""A cluster with real nodes, as `make cluster` provides it: `make e2e` does both."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.cluster.__main__ import DIRECTORY
from hack.cluster.kubectl import Kubectl
from hack.cluster.provider import Provider, chosen
from hack.demo_cluster.installation import Installation
from hack.demo_cluster.volumes import Volumes


@pytest.fixture(scope="session")
def provider() -> Provider:
    """Who provides the cluster; it is up, or the tests that need it fail."""
    directory = Path(os.environ.get("EPD_CLUSTER") or DIRECTORY).resolve()
    return chosen(directory).provider(directory)


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


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of the test's own, with restricted pod security. It is deleted afterwards, without waiting."""
    name = f"epd-e2e-{secrets.token_hex(3)}"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    kubectl.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}])
    kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=30s")
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def volumes(installed: Installation, namespace: str) -> Iterator[Volumes]:
    """Makes claims in the test's namespace; they go with what is in them."""
    made = Volumes(installed.provider, installed.kubectl)
    yield made
    made.remove(namespace)
