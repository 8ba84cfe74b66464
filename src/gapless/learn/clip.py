"""Clip: a policy on the course, as an animated PNG that any browser plays."""

import copy
from pathlib import Path

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.learn import course
from gapless.learn.environment import Environment
from gapless.learn.task import Task
from gapless.robots import studio, write_apng
from gapless.twin import Belief, Twin

WIDTH, HEIGHT, RATE = 400, 300, 12.5
"""Pixels, and pictures per second."""
SHADOW, SAMPLES = 1024, 0
"""Pixels of the shadow map and samples for antialiasing; MuJoCo's defaults take four times as long without a GPU."""
SECONDS = 12.0


def film_course(path: Path, twin: Twin, task: Task, act: course.Act, belief: Belief | None, rng: np.random.Generator) -> None:
    """Film a policy on the course, kicks and all; bad input where OpenGL does not start.

    One run after the other, each from its start and on a robot of its own: every command alone at its largest, then none.
    The arguments are those of `course.run`.
    """
    seen: list[Array] = []

    def watch(environment: Environment) -> None:
        seen.append(environment.worlds.qpos.copy())

    asked = course.run(twin, task, act, belief, rng, 1, seconds=SECONDS, threads=1, watch=watch).command
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
