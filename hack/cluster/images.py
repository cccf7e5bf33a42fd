"""Container images of one layer, without a tool that builds images."""

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIGURATION = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar"


def write_image(archive: Path, name: str, files: Mapping[str, Path], entrypoint: Sequence[str]) -> None:
    """Write an OCI image archive.

    `files` are paths in the image and the files whose content they get, all executable. The same input gives the same
    bytes.
    """
    layer = _tar({path.lstrip("/"): source.read_bytes() for path, source in files.items()}, mode=0o755)
    configuration = _json(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": list(entrypoint)},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _descriptor(CONFIGURATION, configuration),
            "layers": [_descriptor(LAYER, layer)],
        }
    )
    entry = {**_descriptor(MANIFEST, manifest), "annotations": {"io.containerd.image.name": name}}
    content = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "manifests": [entry]}),
        **{f"blobs/{_digest(blob).replace(':', '/')}": blob for blob in (configuration, manifest, layer)},
    }
    archive.parent.mkdir(parents=True, exist_ok=True)
    archive.write_bytes(_tar(content, mode=0o644))


def _tar(files: Mapping[str, bytes], *, mode: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), mode
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _digest(blob: bytes) -> str:
    return f"sha256:{sha256(blob).hexdigest()}"


def _descriptor(media_type: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}
