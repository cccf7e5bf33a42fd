import base64
import struct
import zlib

from hack.pictures import data_url, png


def test_a_png_of_the_size_that_was_asked_for() -> None:
    picture = png(30, 20, 1)
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", picture[16:24]) == (30, 20)
    length = struct.unpack(">I", picture[33:37])[0]
    assert picture[37:41] == b"IDAT"
    assert len(zlib.decompress(picture[41 : 41 + length])) == 20 * (1 + 3 * 30)


def test_the_same_each_time_and_another_for_another_seed() -> None:
    assert png(8, 8, 1) == png(8, 8, 1) != png(8, 8, 2)


def test_data_url() -> None:
    kind, _, content = data_url(b"bytes").partition(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(content) == b"bytes"
