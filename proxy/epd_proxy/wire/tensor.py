"""Small vectors in the file format of `torch.save`, which vLLM 0.28 and 0.29 read metadata in.

The format is a ZIP archive of a pickle and raw storages. The pickle is written opcode by opcode: it rebuilds a
contiguous CPU tensor of one dimension and names nothing else, so it also loads with `weights_only=True`, as vLLM does.
"""

from __future__ import annotations

import base64
import io
import struct
import zipfile
from collections.abc import Sequence

_LONG = ("LongStorage", "<q")
_DOUBLE = ("DoubleStorage", "<d")


def saved_tensor(values: Sequence[int | float]) -> str:
    """Return base64 of a LongTensor, or of a DoubleTensor when a value is not an integer."""
    storage, form = _LONG if all(isinstance(v, int) for v in values) else _DOUBLE
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in (
            ("data.pkl", _pickle(storage, len(values))),
            ("byteorder", b"little"),
            ("data/0", b"".join(struct.pack(form, v) for v in values)),
            ("version", b"3\n"),
        ):
            archive.writestr(zipfile.ZipInfo(f"archive/{name}"), data)
    return base64.b64encode(out.getvalue()).decode()


def _pickle(storage: str, count: int) -> bytes:
    size = b"J" + struct.pack("<i", count)  # BININT
    text = b"X"  # BINUNICODE

    def string(value: str) -> bytes:
        data = value.encode()
        return text + struct.pack("<I", len(data)) + data

    persistent = (
        b"(" + string("storage") + b"ctorch\n" + storage.encode() + b"\n" + string("0") + string("cpu") + size + b"tQ"
    )
    arguments = (
        b"("
        + persistent
        + b"K\x00"  # storage offset
        + size
        + b"\x85"  # shape: a tuple of one
        + b"K\x01\x85"  # stride
        + b"\x89"  # requires_grad: False
        + b"ccollections\nOrderedDict\n)R"  # backward hooks: none
        + b"t"
    )
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n" + arguments + b"R."
