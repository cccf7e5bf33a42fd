"""Helm, for programs."""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.cluster.cache import cache_directory
from hack.cluster.command import run
from hack.cluster.kubectl import Kubectl
from hack.cluster.tools import tool

CHART = Path(__file__).resolve().parents[2] / "charts" / "epd-operator"
WAIT_SECONDS = 300


@dataclass(frozen=True)
class Release:
    """One release of the operator's chart. All methods raise ClusterError with Helm's own words."""

    kubectl: Kubectl
    namespace: str
    name: str = "epd-operator"
    chart: Path = CHART

    def install(self, values: Mapping[str, Any], *options: str) -> str:
        """Install or upgrade, and wait until its pods are ready."""
        return self._with_values("upgrade", values, "--install", *options)

    def upgrade(self, values: Mapping[str, Any], *options: str) -> str:
        """Upgrade an installed release, and wait."""
        return self._with_values("upgrade", values, *options)

    def rollback(self, revision: int = 0) -> str:
        """Go back to an earlier revision, by default the one before, and wait."""
        return self("rollback", self.name, str(revision), *_wait())

    def uninstall(self) -> str:
        """Remove it, and wait until its objects are gone."""
        return self("uninstall", self.name, *_wait())

    def test(self) -> str:
        """Run its tests; returns what they printed."""
        return self("test", self.name, "--logs", f"--timeout={WAIT_SECONDS}s")

    def manifest(self) -> str:
        """The objects of the installed revision, as YAML."""
        return self("get", "manifest", self.name)

    def history(self) -> list[dict[str, Any]]:
        """Its revisions, the oldest first."""
        found: list[dict[str, Any]] = json.loads(self("history", self.name, "--output=json"))
        return found

    def __call__(self, *args: str | Path) -> str:
        """Run Helm with this release's namespace and cluster; returns what it printed."""
        where = [f"--kubeconfig={self.kubectl.kubeconfig}", f"--namespace={self.namespace}"]
        if self.kubectl.context:
            where.append(f"--kube-context={self.kubectl.context}")
        home = cache_directory() / "helm"
        directories = {f"HELM_{name}_HOME": str(home / name.lower()) for name in ("CACHE", "CONFIG", "DATA")}
        return run(helm(), *args, *where, environment={**os.environ, **directories}).stdout

    def _with_values(self, command: str, values: Mapping[str, Any], *options: str) -> str:
        given = [f"--set-json={name}={json.dumps(value)}" for name, value in values.items()]
        return self(command, self.name, self.chart, *given, *_wait(), *options)


def helm() -> Path:
    """The program of the PATH, else the project's own. Raises ClusterError: it cannot be had."""
    found = shutil.which("helm")
    return Path(found) if found else tool("helm")


def _wait() -> list[str]:
    return ["--wait", f"--timeout={WAIT_SECONDS}s"]
