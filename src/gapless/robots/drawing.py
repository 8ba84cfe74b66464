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

from gapless.arrays import Array
from gapless.errors import BadInput
from gapless.files import atomic
from gapless.robots.drives import base_joint
from gapless.robots.model import base_body, home_data

_FLOORS = (int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD))
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
    staged = bool((model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX).any())  # somebody has thought of how it looks
    if not staged:
        model.vis.headlight.ambient[:], model.vis.headlight.diffuse[:], model.vis.headlight.specular[:] = 0.45, 0.4, 0.1
        model.light_active[:] = 0  # those of a robot's own file are meant for another scene
        model.vis.map.shadowclip = 4.0
    low, high = _extent(model)
    view = _camera(model, low, high)
    sky = None if staged else _sky(width, height)
    bare = not np.isin(model.geom_type[model.body_weldid[model.geom_bodyid] == 0], _FLOORS).any()
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
        pixels, depth = np.empty((height, width, 3), np.uint8), np.empty((height, width), np.float32)
        mujoco.mjv_updateScene(model, data, option, mujoco.MjvPerturb(), view, mujoco.mjtCatBit.mjCAT_ALL, scene)
        if bare:
            _lay_floor(scene, low, high)
        if not staged:
            _add_sun(scene)
        mujoco.mjr_render(frame, scene, context)
        mujoco.mjr_readPixels(pixels, depth, frame, context)
        if sky is not None:
            pixels = np.where((depth >= 1.0)[:, :, None], sky, pixels)
        return pixels[::-1]

    try:
        yield picture
    finally:
        context.free()
        screen.free()


def _extent(model: mujoco.MjModel) -> tuple[Array, Array]:
    """The corners of the box around the robot in its home pose [m], without floor and what else is around it."""
    data = home_data(model)
    root = model.body_rootid[base_body(model)]
    mine = (model.body_rootid[model.geom_bodyid] == root) & ~np.isin(model.geom_type, _FLOORS)
    if not mine.any():
        reach = 0.3 * max(float(model.stat.extent), 0.1)
        return data.xpos[1:].min(axis=0, initial=0.0) - reach, data.xpos[1:].max(axis=0, initial=0.0) + reach
    axes = data.geom_xmat.reshape(-1, 3, 3)[mine]
    middle, half = model.geom_aabb.reshape(-1, 2, 3)[mine].swapaxes(0, 1)
    centre = data.geom_xpos[mine] + np.einsum("gij,gj->gi", axes, middle)
    spread = np.einsum("gij,gj->gi", abs(axes), half)
    return np.asarray((centre - spread).min(axis=0)), np.asarray((centre + spread).max(axis=0))


def _camera(model: mujoco.MjModel, low: Array, high: Array) -> mujoco.MjvCamera:
    """The model's camera "side", else a view from the front left and above that has the whole robot in it."""
    view = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, view)
    fixed = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, "side")
    if fixed >= 0:
        view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, fixed
        return view
    radius = max(float(np.linalg.norm(high - low)) / 2, 1e-3)
    view.lookat[:], view.azimuth, view.elevation = (low + high) / 2, 140.0, -18.0
    view.distance = 1.1 * radius / np.sin(np.radians(model.vis.global_.fovy) / 2)
    base = base_joint(model)
    if base is not None:  # else a robot walks out of the picture
        view.type, view.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, int(model.jnt_bodyid[base])
    return view


def _sky(width: int, height: int) -> Array:
    """A bright background, lighter towards the horizon, rows from below. Shape: (height, width, 3)."""
    share = np.linspace(0, 1, height)[:, None, None]
    return np.broadcast_to((1 - share) * [238, 241, 244] + share * [188, 203, 219], (height, width, 3)).astype(np.uint8)


def _lay_floor(scene: mujoco.MjvScene, low: Array, high: Array) -> None:
    """Put a floor under a robot that has none, only to look at."""
    if scene.ngeom >= scene.maxgeom:
        return
    side = 30 * float(np.linalg.norm(high - low))
    size, place = np.array([side, side, 0.05]), np.array([*(low + high)[:2] / 2, low[2] - 1e-3])
    colour = np.array([0.62, 0.65, 0.68, 1.0], np.float32)
    mujoco.mjv_initGeom(scene.geoms[scene.ngeom], mujoco.mjtGeom.mjGEOM_PLANE, size, place, np.eye(3).ravel(), colour)
    scene.ngeom += 1


def _add_sun(scene: mujoco.MjvScene) -> None:
    """A light from above that casts shadows, so that shapes stand out."""
    if scene.nlight >= len(scene.lights):
        return
    sun = scene.lights[scene.nlight]
    sun.type, sun.castshadow, sun.headlight = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL, 1, 0
    sun.dir[:], sun.pos[:] = [0.35, 0.3, -0.89], [-2.0, -2.0, 5.0]
    sun.ambient[:], sun.diffuse[:], sun.specular[:], sun.attenuation[:] = 0.0, 0.6, 0.15, [1, 0, 0]
    scene.nlight += 1


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
