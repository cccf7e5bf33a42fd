import json
import tarfile
from hashlib import sha256
from pathlib import Path

from hack.cluster.images import write_image


def test_an_image_names_its_parts_by_their_digests(tmp_path: Path) -> None:
    program, archive = tmp_path / "program", tmp_path / "image.tar"
    program.write_bytes(b"program")
    write_image(archive, "localhost/a:1", {"/bin/a": program}, ["/bin/a"])
    with tarfile.open(archive) as tar:
        content = {entry.name: tar.extractfile(entry).read() for entry in tar}  # type: ignore[union-attr]
    for name, data in content.items():
        if name.startswith("blobs/"):
            assert name == f"blobs/sha256/{sha256(data).hexdigest()}"
    entry = json.loads(content["index.json"])["manifests"][0]
    assert entry["annotations"] == {"io.containerd.image.name": "localhost/a:1"}
    manifest = json.loads(content[f"blobs/{entry['digest'].replace(':', '/')}"])
    for part in (manifest["config"], *manifest["layers"]):
        assert len(content[f"blobs/{part['digest'].replace(':', '/')}"]) == part["size"]


def test_an_image_is_the_same_every_time(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"program")
    for name in ("a", "b"):
        write_image(tmp_path / name, "localhost/a:1", {"/a": program}, ["/a"])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
