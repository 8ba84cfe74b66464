"""Clips are animated PNGs, whole ones, of the course."""

import contextlib
import struct
import zlib

import numpy as np

from gapless.learn import clip
from gapless.learn.clip import film_course, write_apng
from gapless.learn.tasks import task_of
from gapless.twin import Twin


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


def test_a_clip_shows_every_command_alone_and_then_none_each_from_its_start(tmp_path, monkeypatch):
    twin, drawn, asked, kept = Twin.load("quadruped"), [], [], []
    task, run = task_of("velocity", twin), clip.course.run

    def watched(*args, watch, **options):
        result = run(*args, watch=lambda e: (kept.append(e.worlds.qpos.copy()), watch(e)), **options)
        asked.append(result.command)
        return result

    def picture(data):
        drawn.append(data.qpos.copy())
        return np.zeros((3, 4, 3), np.uint8)

    monkeypatch.setattr(clip.course, "run", watched)
    monkeypatch.setattr(clip, "studio", lambda *_: contextlib.nullcontext(picture))
    monkeypatch.setattr(clip, "SECONDS", 1.6)
    rng = np.random.default_rng(0)
    film_course(tmp_path / "clip.png", twin, task, lambda o: 0.5 * rng.standard_normal((len(o), 12)), None, rng)
    assert len(drawn) == 4 * 5  # four runs of 0.4 s at 12.5 pictures a second
    expected = [[1.0, 0.0, 0.0], [0.0, 0.3, 0.0], [0.0, 0.0, 0.8], [0.0, 0.0, 0.0]]
    for shot, command in zip(np.reshape(drawn, (4, 5, -1)), expected, strict=True):
        of = int(np.flatnonzero((asked[0] == command).all(axis=1))[0])
        np.testing.assert_array_equal(shot, [qpos[of] for qpos in kept[:20:4]])
    assert (tmp_path / "clip.png").stat().st_size > 0
