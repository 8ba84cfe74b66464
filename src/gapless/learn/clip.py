"""Clip: a policy at work, as an animated PNG that any browser plays."""

from __future__ import annotations

import copy
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from gapless.learn.environment import Environment, Frame
from gapless.learn.task import Task
from gapless.logs.disk import atomic
from gapless.policy.contract import Contract
from gapless.robots.draw import render
from gapless.twin import Belief, Twin

WIDTH, HEIGHT, RATE = 400, 300, 12.5
"""Pixels, and pictures per second; drawing without a graphics card takes 0.1 s each."""


def record(
    path: Path,
    twin: Twin,
    task: Task,
    act: Callable[[Frame], ArrayLike],
    belief: Belief | None,
    rng: np.random.Generator,
    seconds: float = 6.0,
    contract: Contract | None = None,
) -> None:
    """Let a policy play its task in one world, and film it; bad input where OpenGL does not start."""
    environment = Environment(twin, task, 1, belief, rng, threads=1, contract=contract)
    observation = environment.reset()["policy"]
    model = copy.copy(twin.model)
    data, pictures = mujoco.MjData(model), []
    every = max(1, round(1 / RATE / twin.control_dt))
    for k in range(round(seconds / twin.control_dt)):
        if k % every == 0:
            data.qpos[:] = environment.worlds.qpos[0]
            mujoco.mj_forward(model, data)
            pictures.append(render(model, data, WIDTH, HEIGHT))
        observation = environment.step(act(observation)).observation["policy"]
    write_apng(path, pictures, every * twin.control_dt)


def write_apng(path: Path, pictures: list[NDArray[np.uint8]], delay: float) -> None:
    """Write pictures (height, width, 3) as an animated PNG that repeats, whole or not at all (PNG, third edition).

    delay: between two pictures [s].
    """
    height, width, _ = pictures[0].shape
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    out = [b"\x89PNG\r\n\x1a\n", _chunk(b"IHDR", header), _chunk(b"acTL", struct.pack(">II", len(pictures), 0))]
    number = 0
    for k, picture in enumerate(pictures):
        control = struct.pack(">IIIIIHHBB", number, width, height, 0, 0, round(1000 * delay), 1000, 0, 0)
        packed = zlib.compress(np.insert(picture.reshape(height, width * 3), 0, 0, axis=1).tobytes(), 6)
        out.append(_chunk(b"fcTL", control))
        out.append(_chunk(b"IDAT", packed) if k == 0 else _chunk(b"fdAT", struct.pack(">I", number + 1) + packed))
        number += 1 if k == 0 else 2
    out.append(_chunk(b"IEND", b""))
    with atomic(path) as part:
        part.write_bytes(b"".join(out))


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
