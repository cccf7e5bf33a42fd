"""The project's own kinds on a cluster."""

from pathlib import Path

from hack.cluster.kubectl import Kubectl

FILES = tuple(sorted((Path(__file__).parents[2] / "crds").glob("*.yaml")))


def apply_crds(kubectl: Kubectl) -> None:
    """Define the kinds, and wait until they are served. Raises KubectlError."""
    for file in FILES:
        kubectl.apply(file.read_text())
    for file in FILES:
        kubectl("wait", "--for=condition=Established", f"--filename={file}", "--timeout=30s")
