"""Clip: a policy on the course, as an animated PNG that any browser plays."""

from __future__ import annotations

import copy
import struct
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from gapless.arrays import Array
from gapless.files import atomic
from gapless.learn import course
from gapless.learn.task import Task
from gapless.policy import Contract
from gapless.robots import PNG, png_chunk, png_header, png_rows, studio
from gapless.twin import Belief, Twin

WIDTH, HEIGHT, RATE = 400, 300, 12.5
"""Pixels, and pictures per second."""
SHADOW, SAMPLES = 1024, 0
"""Of a picture: pixels of the shadow's map and samples of each edge; MuJoCo's own take four times as long in software."""
SECONDS = 12.0


def film_course(
    path: Path,
    twin: Twin,
    task: Task,
    act: course.Act,
    belief: Belief | None,
    rng: np.random.Generator,
    contract: Contract | None = None,
    reset: course.Forget = lambda which: None,
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
    out = [PNG, png_header(pictures[0]), png_chunk(b"acTL", struct.pack(">II", len(pictures), 0))]
    number = 0
    for k, picture in enumerate(pictures):
        control = struct.pack(">IIIIIHHBB", number, width, height, 0, 0, round(1000 * delay), 1000, 0, 0)
        out.append(png_chunk(b"fcTL", control))
        rows = png_rows(picture)
        out.append(png_chunk(b"IDAT", rows) if k == 0 else png_chunk(b"fdAT", struct.pack(">I", number + 1) + rows))
        number += 1 if k == 0 else 2
    out.append(png_chunk(b"IEND", b""))
    with atomic(path) as part:
        part.write_bytes(b"".join(out))
