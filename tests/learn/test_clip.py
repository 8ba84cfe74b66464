"""Clips are animated PNGs, whole ones."""

import struct
import zlib

import numpy as np

from gapless.learn.clip import write_apng


def test_a_clip_has_all_its_pictures_in_order_and_in_time(tmp_path):
    rng = np.random.default_rng(0)
    pictures = [rng.integers(0, 256, (6, 8, 3), dtype=np.uint8) for _ in range(3)]
    write_apng(tmp_path / "clip.png", pictures, 0.08)
    data, at, found, numbers, delays = (tmp_path / "clip.png").read_bytes(), 8, [], [], []
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        if kind == b"fcTL":
            numbers.append(struct.unpack(">I", body[:4])[0])
            delays.append(struct.unpack(">HH", body[20:24]))
        if kind in (b"IDAT", b"fdAT"):
            if kind == b"fdAT":
                numbers.append(struct.unpack(">I", body[:4])[0])
            rows = np.frombuffer(zlib.decompress(body[4:] if kind == b"fdAT" else body), np.uint8).reshape(6, 25)
            assert not rows[:, 0].any()
            found.append(rows[:, 1:].reshape(6, 8, 3))
        at += 12 + length
    np.testing.assert_array_equal(found, pictures)
    assert numbers == list(range(5))
    assert delays == [(80, 1000)] * 3
