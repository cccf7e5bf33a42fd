"""Building images without a daemon: buildah with a store of its own in the project's cache."""

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.cache import cache_directory
from hack.cluster.command import ENVIRONMENT, run
from hack.cluster.errors import ClusterError, MissingPrerequisite

REGISTRY = "localhost"
"""What buildah calls the place of images that have none. A node says docker.io/library for the same names."""
NODE_REGISTRY = "docker.io/library"
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def require(program: str, *, where_none: str | None = None) -> None:
    """Raises MissingPrerequisite: there is no such program here, or something else is amiss."""
    if where_none:
        raise MissingPrerequisite(where_none)
    if not shutil.which(program):
        raise MissingPrerequisite(
            f"images are built by Docker, or by buildah and mmdebstrap, and there is no `{program}` on the PATH; "
            "on Debian: apt-get install --no-install-recommends buildah mmdebstrap"
        )


@dataclass(frozen=True)
class Buildah:
    """buildah and the images that it built."""

    store: Path

    @classmethod
    def of_cache(cls) -> "Buildah":
        """With the store in the project's cache. Raises MissingPrerequisite."""
        require("buildah")
        return cls(cache_directory() / "images")

    @property
    def scratch(self) -> Path:
        """For large files that are needed for a moment."""
        path = self.store / "scratch"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def has(self, name: str) -> bool:
        """Whether an image is in the store."""
        return not self._run("inspect", "--type=image", self._full(name), check=False)[0]

    def prune(self, repository: str, keep: int) -> None:
        """Remove all but the newest images of a name, and older layers that were kept for builds alone.

        What is in use stays. Raises ClusterError.
        """
        images = sorted(json.loads(self._checked("images", "--json")), key=lambda image: image["created"], reverse=True)
        prefix = self._full(f"{repository}:")
        ours = [image for image in images if any(name.startswith(prefix) for name in image["names"] or ())]
        if len(ours) <= keep:
            return
        oldest = ours[keep - 1]["created"]
        for image in ours[keep:]:
            self._run("rmi", *image["names"], check=False)
        for image in images:  # the newest first: a layer goes after those that are built on it
            if not image["names"] and image["created"] < oldest:
                self._run("rmi", image["id"], check=False)

    def references(self, repository: str) -> set[str]:
        """The images of a name that are in the store, as `name:tag`. Raises ClusterError."""
        images = json.loads(self._checked("images", "--json"))
        names = {name.removeprefix(f"{REGISTRY}/") for image in images for name in image["names"] or ()}
        return {name for name in names if name.startswith(f"{repository}:")}

    def build(self, name: str, dockerfile: Path, context: Path, arguments: Mapping[str, str], *, layers: bool) -> None:
        """Build an image. `layers`: keep what each step made, for the next build. Raises ClusterError."""
        options = ["--force-rm", *(f"--build-arg={key}={value}" for key, value in arguments.items())]
        if CERTIFICATES.exists():
            options.append(f"--secret=id=ca-bundle,src={CERTIFICATES}")
        # In a chroot and on the host's network, a build needs no container runtime.
        where = ["--isolation=chroot", "--network=host", "--pull-never", f"--layers={'true' if layers else 'false'}"]
        what = ["--format=oci", f"--tag={self._full(name)}", f"--file={dockerfile}"]
        self._checked("bud", "--quiet", *where, *what, *options, context)

    def commit_archive(self, archive: Path, name: str) -> None:
        """Make an image of one layer from a tar archive. Raises ClusterError."""
        container = self._checked("from", "scratch").strip()
        try:
            self._checked("add", "--quiet", container, archive, "/")
            path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
            self._checked("config", "--cmd=/bin/sh", f"--env={path}", container)
            self._checked("commit", "--quiet", container, self._full(name))
        finally:
            self._checked("rm", container)

    @contextmanager
    def mounted(self, name: str) -> Iterator[Path]:
        """The files of an image, while the context lasts. Raises ClusterError."""
        container = self._checked("from", "--pull-never", self._full(name)).strip()
        try:
            yield Path(self._checked("mount", container).strip())
        finally:
            self._checked("rm", container)

    def export(self, name: str, consume: Callable[[Path], None]) -> None:
        """Hand an image as a docker-archive to `consume`, which reads it once from the start to its end.

        It is a pipe: nothing of it lies on the disk. Raises ClusterError.
        """
        with tempfile.TemporaryDirectory(dir=self.scratch) as temporary:
            pipe = Path(temporary) / "image.tar"
            os.mkfifo(pipe)
            failures: list[ClusterError] = []

            def write() -> None:
                try:
                    self.save(name, pipe)
                except ClusterError as error:
                    failures.append(error)

            writer = threading.Thread(target=write, daemon=True)
            writer.start()
            try:
                consume(pipe)
            except ClusterError as error:
                raise (failures or [error])[0] from error
            writer.join()
            if failures:
                raise failures[0]

    def save(self, name: str, archive: Path) -> None:
        """Write an image as a docker-archive under the name that nodes know it by. Raises ClusterError."""
        self._checked("push", "--quiet", self._full(name), f"docker-archive:{archive}:{NODE_REGISTRY}/{name}")

    @staticmethod
    def _full(name: str) -> str:
        return f"{REGISTRY}/{name}"

    def _checked(self, *args: str | Path) -> str:
        code, output = self._run(*args)
        assert code == 0
        return output

    def _run(self, *args: str | Path, check: bool = True) -> tuple[int, str]:
        options = [f"--root={self.store / 'store'}", f"--runroot={self.store / 'run'}", "--storage-driver=overlay"]
        environment = {**ENVIRONMENT, "TMPDIR": str(self.scratch)}
        proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        done = run("nice", "-n", "15", "buildah", *options, *args, check=check, environment={**environment, **proxies})
        return done.returncode, done.stdout
