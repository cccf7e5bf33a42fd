"""Images that go from the builder's store, and those that stay."""

import json
from pathlib import Path

import pytest

from hack.images.buildah import Buildah

STORE = [
    {"id": "a3", "names": ["localhost/app:3"], "created": 30},
    {"id": "a2", "names": ["localhost/app:2"], "created": 20},
    {"id": "a1", "names": ["localhost/app:1"], "created": 10},
    {"id": "b1", "names": ["localhost/app-two:1"], "created": 1},
    {"id": "layer-new", "names": None, "created": 29},
    {"id": "layer-old", "names": None, "created": 9},
]


@pytest.mark.parametrize(("keep", "removed"), [(3, []), (2, ["localhost/app:1", "layer-old"])])
def test_the_newest_images_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, keep: int, removed: list[str]) -> None:
    gone: list[str] = []

    def run(_: Buildah, command: str, *words: str, check: bool = True) -> tuple[int, str]:
        if command == "rmi":
            gone.extend(words)
        return 0, json.dumps(STORE)

    monkeypatch.setattr(Buildah, "_run", run)
    Buildah(tmp_path).prune("app", keep)
    assert gone == removed
    assert Buildah(tmp_path).references("app") == {"app:1", "app:2", "app:3"}
