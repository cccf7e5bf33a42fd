"""Images that go from the node, and those that stay."""

from pathlib import Path
from typing import Any

import pytest

from hack.cluster.containerd import Containerd
from hack.cluster.daemons import Daemons
from hack.cluster.settings import Layout, Settings

CONTAINERS = """CONTAINER IMAGE RUNTIME
c1 docker.io/library/app:used io.containerd.runc.v2
"""
IMAGES = """REF TYPE DIGEST SIZE PLATFORMS LABELS
docker.io/library/app:kept application/x sha256:1 1.0 MiB linux/amd64 -
docker.io/library/app:old application/x sha256:2 1.0 MiB linux/amd64 -
localhost/app:old application/x sha256:2 1.0 MiB linux/amd64 -
sha256:id-of-old application/x sha256:2 1.0 MiB linux/amd64 -
docker.io/library/app:used application/x sha256:3 1.0 MiB linux/amd64 -
docker.io/library/app-two:old application/x sha256:4 1.0 MiB linux/amd64 -
"""


@pytest.mark.parametrize(
    ("kept", "removed"),
    [
        ({"docker.io/library/app:kept"}, ["docker.io/library/app:old", "localhost/app:old", "sha256:id-of-old"]),
        ({"docker.io/library/app:kept", "docker.io/library/app:old"}, []),
    ],
)
def test_an_image_goes_under_all_its_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: set[str], removed: list[str]
) -> None:
    gone: list[str] = []

    def ctr(_: Containerd, kind: str, verb: str, *names: str) -> str:
        if verb == "remove":
            gone.extend(names)
        return {"containers": CONTAINERS, "images": IMAGES}[kind]

    monkeypatch.setattr(Containerd, "ctr", ctr)
    runtime: Any = Containerd(Settings(), Layout(tmp_path), Daemons(tmp_path))
    runtime.forget("docker.io/library/app", kept)
    assert gone == removed
