"""Pictures: drawn offscreen, written whole, and a clear sentence where OpenGL is missing."""

import struct
import zlib

import mujoco
import numpy as np
import pytest

from gapless.errors import BadInput
from gapless.robots import drawing as draw_module, load_robot
from gapless.robots.drawing import draw, write_apng, write_png


def read_png(path):
    """The pixels of an unfiltered RGB PNG, with every checksum verified."""
    data, at, chunks = path.read_bytes(), 8, {}
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind], at = body, at + 12 + length
    width, height = struct.unpack(">II", chunks[b"IHDR"][:8])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_png_holds_the_pixels(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 3), dtype=np.uint8)
    write_png(tmp_path / "a.png", pixels)
    np.testing.assert_array_equal(read_png(tmp_path / "a.png"), pixels)
    assert [p.name for p in tmp_path.iterdir()] == ["a.png"]


def test_an_animated_png_has_all_its_pictures_in_order_and_in_time(tmp_path):
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


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"nowhere/a\.png"):
        write_png(tmp_path / "nowhere" / "a.png", np.zeros((1, 1, 3), np.uint8))


def test_a_robot_is_drawn_upright_and_in_its_colours(tmp_path):
    try:
        draw(load_robot("arm").model, tmp_path / "arm.png", 160, 120)
    except BadInput as error:
        pytest.skip(str(error))
    picture = read_png(tmp_path / "arm.png").astype(int)
    assert picture.shape == (120, 160, 3)
    red, _, blue = np.moveaxis(picture, 2, 0)
    assert (blue[:8] > red[:8] + 15).mean() > 0.9  # the sky is blue and above
    assert (red > blue + 100).sum() > 200  # the arm is orange


def test_a_robot_without_camera_lights_or_geoms_is_still_seen(tmp_path):
    body = '<body><joint/><inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/></body>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    try:
        draw(model, tmp_path / "a.png", 80, 60)
    except BadInput as error:
        pytest.skip(str(error))
    assert np.ptp(read_png(tmp_path / "a.png")) > 20


def test_without_opengl_the_packages_are_named(monkeypatch, tmp_path):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(draw_module.sys, "platform", "linux")
    monkeypatch.setattr(draw_module, "find_library", lambda name: None)
    with pytest.raises(BadInput, match=r"libegl1.*libosmesa6"):
        draw(load_robot("bench").model, tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
