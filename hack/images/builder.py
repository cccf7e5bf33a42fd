"""Who builds images: Docker where its daemon answers, else buildah."""

import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hack.cluster.cache import cache_directory, locked
from hack.cluster.command import run
from hack.cluster.kind import docker_runs
from hack.cluster.provider import Provider
from hack.images.base import base_image
from hack.images.buildah import CERTIFICATES, NODE_REGISTRY, REGISTRY, Buildah
from hack.images.catalog import ROOT, Image

DOCKER_BASE = "docker.io/library/python:3.12-slim"

KEPT = 3
"""Images of one name that stay, for those who go back and forth between sources."""


class Builder(Protocol):
    """Builds images and keeps them. All methods raise ClusterError; a reference is `name:tag`."""

    def ensure(self, image: Image) -> str:
        """Build the image, unless one of the same sources is there. Returns its reference."""

    def load(self, reference: str, provider: Provider) -> None:
        """Put a built image on a cluster's nodes, unless it is there."""

    def save(self, reference: str, archive: Path) -> None:
        """Write a built image as a docker-archive."""

    def base(self) -> str:
        """What images are built on."""

    def files(self, reference: str) -> AbstractContextManager[Path]:
        """A folder with the image's files, while the context lasts."""


def builder() -> Builder:
    """Docker or buildah. Raises MissingPrerequisite: neither is here."""
    return Docker() if docker_runs() else WithBuildah(Buildah.of_cache())


@dataclass(frozen=True)
class WithBuildah:
    """By buildah, on a base of Debian packages. No registry, no daemon."""

    buildah: Buildah

    def base(self) -> str:
        """Made when it is not there."""
        return base_image(self.buildah)

    def ensure(self, image: Image) -> str:
        """One build at a time: others wait and then find the image."""
        reference = image.reference()
        with locked(self.buildah.store / ".lock"):
            if not self.buildah.has(reference):
                arguments = {"BASE_IMAGE": f"{REGISTRY}/{self.base()}", "VERSION": image.version}
                self.buildah.build(reference, image.dockerfile, ROOT, arguments, layers=not image.large)
                self.buildah.prune(image.name, keep=1 if image.large else KEPT)
        return reference

    def load(self, reference: str, provider: Provider) -> None:
        """Through a pipe where the provider reads one."""
        if not provider.has(on_node(reference)):
            self.buildah.export(reference, lambda archive: print(provider.load(archive)))
            repository = reference.partition(":")[0]
            provider.forget(on_node(repository), {on_node(one) for one in self.buildah.references(repository)})

    def save(self, reference: str, archive: Path) -> None:
        """As containerd and Docker read it."""
        archive.unlink(missing_ok=True)
        self.buildah.save(reference, archive)

    @contextmanager
    def files(self, reference: str) -> Iterator[Path]:
        """Mounted, read only by agreement."""
        with self.buildah.mounted(reference) as directory:
            yield directory


@dataclass(frozen=True)
class Docker:
    """By a Docker daemon, on the base that the Dockerfiles name."""

    def base(self) -> str:
        """Pulled from the registry."""
        _docker("pull", "--quiet", DOCKER_BASE)
        return DOCKER_BASE

    def ensure(self, image: Image) -> str:
        """Docker itself keeps layers."""
        reference = image.reference()
        if run("docker", "image", "inspect", reference, check=False).returncode:
            secret = [f"--secret=id=ca-bundle,src={CERTIFICATES}"] if CERTIFICATES.exists() else []
            options = [f"--build-arg=VERSION={image.version}", f"--file={image.dockerfile}", f"--tag={reference}"]
            _docker("build", "--quiet", *secret, *options, str(ROOT))
        return reference

    def load(self, reference: str, provider: Provider) -> None:
        """Through a file, since `docker save` has no other."""
        if not provider.has(on_node(reference)):
            with tempfile.TemporaryDirectory(dir=cache_directory()) as temporary:
                archive = Path(temporary) / "image.tar"
                self.save(reference, archive)
                print(provider.load(archive))

    def save(self, reference: str, archive: Path) -> None:
        """By `docker save`."""
        _docker("save", "--output", str(archive), reference)

    @contextmanager
    def files(self, reference: str) -> Iterator[Path]:
        """Copied out."""
        container = _docker("create", reference).strip()
        try:
            with tempfile.TemporaryDirectory(dir=cache_directory()) as temporary:
                _docker("cp", "--quiet", f"{container}:/", temporary)
                yield Path(temporary)
        finally:
            _docker("rm", container)


def on_node(reference: str) -> str:
    """What a node calls an image whose reference names no registry."""
    return f"{NODE_REGISTRY}/{reference}"


def _docker(*args: str) -> str:
    return run("docker", *args).stdout
