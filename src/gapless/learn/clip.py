"""Clip: a policy on the course, as an animated PNG that any browser plays."""

from __future__ import annotations

import copy
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from gapless.learn import course
from gapless.learn.task import Task
from gapless.logs.disk import atomic
from gapless.policy.contract import Contract
from gapless.robots.draw import studio
from gapless.twin import Belief, Twin
from gapless.twin.space import Array

WIDTH, HEIGHT, RATE = 400, 300, 12.5
"""Pixels, and pictures per second."""
SHADOW, SAMPLES = 1024, 0
"""Of a picture: pixels of the shadow's map and samples of each edge; MuJoCo's own take four times as long in software."""
SECONDS = 12.0


def record(
    path: Path,
    twin: Twin,
    task: Task,
    act: course.Act,
    belief: Belief | None,
    rng: np.random.Generator,
    contract: Contract | None = None,
    reset: Callable[[NDArray[np.bool_]], None] = lambda which: None,
) -> None:
    """Film a policy on the course, kicks and all; bad input where OpenGL does not start.

    One run after the other, each from its start and on a robot of its own: every command alone at its largest, then none.
    The arguments are those of `course.run`.
    """
    seen: list[Array] = []
    result = course.run(
        twin, task, act, belief, rng, 1, seconds=SECONDS, threads=1, contract=contract, reset=reset,
        watch=lambda environment: seen.append(environment.worlds.qpos.copy()),
    )  # fmt: skip
    asked = result.command
    alone = np.vstack([np.diag(asked.max(axis=0)), np.zeros(asked.shape[1])])
    runs = dict.fromkeys(int(np.abs(asked - wanted).sum(axis=1).argmin()) for wanted in alone)
    every = max(1, round(1 / RATE / twin.control_dt))
    model = copy.copy(twin.model)
    model.vis.quality.shadowsize, model.vis.quality.offsamples = SHADOW, SAMPLES
    model.light_mode[model.light_bodyid == 0] = mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM  # else a robot walks out of the light
    data, pictures = mujoco.MjData(model), []
    with studio(model, WIDTH, HEIGHT) as picture:
        for run in runs:
            for qpos in seen[: len(seen) // len(runs) : every]:
                data.qpos[:] = qpos[run]
                mujoco.mj_forward(model, data)
                pictures.append(picture(data))
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
