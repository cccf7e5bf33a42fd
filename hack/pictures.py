"""Pictures to ask questions about: deterministic noise, which no encoding makes small."""

import base64
import random
import struct
import zlib


def png(width: int, height: int, seed: int) -> bytes:
    """An RGB picture as PNG; about three bytes a pixel."""
    noise = random.Random(seed)
    rows = b"".join(b"\0" + noise.randbytes(3 * width) for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def data_url(picture: bytes) -> str:
    """A PNG as the data: URL of a chat request."""
    return "data:image/png;base64," + base64.b64encode(picture).decode()
