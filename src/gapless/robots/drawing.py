"""Pictures of a robot without a screen: an offscreen render, written as PNG."""

import contextlib
import copy
import importlib
import itertools
import os
import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from gapless.errors import BadInput
from gapless.files import atomic
from gapless.robots.model import home_data

_PACKAGES = "on Debian: apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri, or libosmesa6"


def draw(model: mujoco.MjModel, path: str | os.PathLike[str], width: int = 960, height: int = 720) -> None:
    """Draw the model in its home pose through its camera "side" (else a default view)."""
    data = home_data(model)
    mujoco.mj_forward(model, data)
    with studio(model, width, height) as picture:
        write_png(path, picture(data))


@contextlib.contextmanager
def studio(model: mujoco.MjModel, width: int, height: int) -> Iterator[Callable[[mujoco.MjData], np.ndarray]]:
    """A function that draws states of a model as pixels (height, width, 3); starting OpenGL takes longer than a picture."""
    model = copy.copy(model)
    model.vis.global_.offwidth, model.vis.global_.offheight = width, height
    if not model.nlight:
        model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:] = 0.4, 0.8
    view = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, view)
    fixed = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, "side")
    if fixed >= 0:
        view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, fixed
    elif (model.jnt_type == mujoco.mjtJoint.mjJNT_FREE).any():  # else a robot walks out of the picture
        base = int(model.jnt_bodyid[np.argmax(model.jnt_type == mujoco.mjtJoint.mjJNT_FREE)])
        view.type, view.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, base
    option = mujoco.MjvOption()
    groups = model.geom_group[model.body_weldid[model.geom_bodyid] != 0]
    option.geomgroup[3:] = not (groups < 3).any()  # a robot of collision geoms only: show those
    option.flags[mujoco.mjtVisFlag.mjVIS_INERTIA] = not groups.size  # of no geoms at all: show its inertias
    scene = mujoco.MjvScene(model, maxgeom=10_000)
    frame = mujoco.MjrRect(0, 0, width, height)
    try:
        screen = _context_class()(width, height)
        screen.make_current()
        context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
    except Exception as error:
        raise BadInput(f"cannot draw, as OpenGL does not start ({error}); {_PACKAGES}") from None
    mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, context)

    def picture(data: mujoco.MjData) -> np.ndarray:
        pixels = np.empty((height, width, 3), np.uint8)
        mujoco.mjv_updateScene(model, data, option, mujoco.MjvPerturb(), view, mujoco.mjtCatBit.mjCAT_ALL, scene)
        mujoco.mjr_render(frame, scene, context)
        mujoco.mjr_readPixels(pixels, None, frame, context)
        return pixels[::-1]

    try:
        yield picture
    finally:
        context.free()
        screen.free()


def _context_class() -> Any:
    """The class that opens an offscreen OpenGL context here: what MUJOCO_GL names, else EGL, else OSMesa.

    mujoco reads MUJOCO_GL only when it is first imported, so the choice is made here, where it is never too late.
    """
    if sys.platform != "linux" or os.environ.get("MUJOCO_GL"):
        return mujoco.GLContext
    for name, library in (("egl", "EGL"), ("osmesa", "OSMesa")):
        if find_library(library):
            return importlib.import_module(f"mujoco.{name}").GLContext
    raise OSError("neither libEGL nor libOSMesa is installed")


def write_png(path: str | os.PathLike[str], pixels: np.ndarray) -> None:
    """Write a (height, width, 3) uint8 picture, whole or not at all."""
    _write(path, [_header(pixels), _chunk(b"IDAT", _rows(pixels))])


def write_apng(path: str | os.PathLike[str], pictures: Sequence[np.ndarray], delay: float) -> None:
    """Write pictures (height, width, 3) as an animated PNG that repeats, whole or not at all (PNG, third edition).

    delay: between two pictures [s].
    """
    height, width, _ = pictures[0].shape
    chunks = [_header(pictures[0]), _chunk(b"acTL", struct.pack(">II", len(pictures), 0))]
    number = itertools.count()
    for k, picture in enumerate(pictures):
        control = struct.pack(">IIIIIHHBB", next(number), width, height, 0, 0, round(1000 * delay), 1000, 0, 0)
        chunks.append(_chunk(b"fcTL", control))
        rows = _rows(picture)
        chunks.append(_chunk(b"fdAT", struct.pack(">I", next(number)) + rows) if k else _chunk(b"IDAT", rows))
    _write(path, chunks)


def _write(path: str | os.PathLike[str], chunks: list[bytes]) -> None:
    try:
        with atomic(Path(path)) as part:
            part.write_bytes(b"".join([b"\x89PNG\r\n\x1a\n", *chunks, _chunk(b"IEND", b"")]))
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror}") from None


def _header(pixels: np.ndarray) -> bytes:
    """The chunk that says how large a picture is: 8 bits a channel, RGB."""
    height, width, _ = pixels.shape
    return _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))


def _rows(pixels: np.ndarray) -> bytes:
    """A picture's rows, packed; each opens with filter 0, none."""
    return zlib.compress(np.insert(pixels.reshape(len(pixels), -1), 0, 0, axis=1).tobytes(), 6)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
