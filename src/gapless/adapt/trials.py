"""Trials: episodes of a task on one robot under a policy with a z that stays, and the seconds that they take."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from gapless.adapt.expert import Teacher
from gapless.adapt.search import Trial
from gapless.arrays import Array, Bools
from gapless.learn import Deterministic, Environment, Frame, Step, Task, Truth, evaluate, save_trained
from gapless.twin import Point, Twin

Watch = Callable[[Frame, Frame, Step, Bools], None]
"""What was seen, done and came of it in a period, and where the first episode was still going on."""


def episodes(
    environment: Environment, act: Callable[[Frame], Frame], watch: Watch = lambda seen, action, step, alive: None
) -> tuple[Array, Bools, Array]:
    """An episode in each world: reward per second of a whole one, whether it fell, and how long it lasted. Shapes: (n,)."""
    n, dt, length = environment.n, environment.twin.control_dt, environment.task.episode.seconds
    seen, alive = environment.reset()["policy"], np.ones(n, bool)
    reward, fell, seconds = np.zeros(n), np.zeros(n, bool), np.zeros(n)
    for _ in range(round(length / dt)):
        action = act(seen)
        step = environment.step(action)
        watch(seen, action, step, alive)
        reward += np.where(alive, step.reward, 0.0)
        seconds += np.where(alive, dt, 0.0)
        fell |= alive & step.failed
        alive &= ~(step.failed | step.timeout)
        seen = step.observation["policy"]
        if not alive.any():
            break
    return reward / length, fell, seconds


class Trials:
    """One simulated robot; its reward is the task's, which needs what only a simulator measures."""

    def __init__(self, teacher: Teacher, twin: Twin, values: Array, task: Task, seed: int = 0, threads: int = 0):
        """Nothing is simulated yet.

        Args:
            teacher: whose policy runs.
            twin: the robot as it really is.
            values: its parameters, over all of the twin's. Shape: (parameters,).
            task: what it has to do.
            seed: of starts and noise.
            threads: of physics, 0 for one per core.
        """
        torch.set_num_threads(1)
        self.teacher, self.size, self.seconds = teacher, teacher.expert.size, 0.0
        """Of robot time so far [s]."""
        self._given = twin, values, task, threads
        self._rng = np.random.default_rng([seed, 0x5EA])
        self._made: dict[int, Environment] = {}

    def environment(self, n: int) -> Environment:
        """So many copies of the robot, each at its own start."""
        if n not in self._made:
            twin, values, task, threads = self._given
            contract = self.teacher.given(np.zeros(self.size))
            self._made[n] = Environment(twin, task, n, Point(twin.space, values), self._rng.spawn(1)[0], threads, contract)
        return self._made[n]

    def __call__(self, z: Array) -> list[Trial]:
        """An episode with each z. Shape: (k, size)."""
        policy = Deterministic(self.teacher.expert, {})
        reward, fell, seconds = episodes(self.environment(len(z)), lambda seen: policy(_with(seen, z)))
        self.seconds += float(seconds.sum())
        return [
            Trial(np.array(each), float(r), bool(f), float(s)) for each, r, f, s in zip(z, reward, fell, seconds, strict=True)
        ]

    def truth(self) -> Array:
        """The z that the teacher would be given on this robot. Shape: (size,)."""
        parameters = Truth(self.teacher.context, self._given[0])(self.environment(1).worlds)
        with torch.inference_mode():
            return self.teacher.expert.encode(torch.from_numpy(parameters.astype(np.float32)))[0].numpy().astype(float)

    def save(self, z: Array, folder: Path, provider: str = "search") -> None:
        """Write the policy with this z into a folder, with golden frames from the robot; not counted as robot time."""
        twin, values, task, threads = self._given
        contract = self.teacher.given(z, provider)
        robot = Environment(twin, task, 4, Point(twin.space, values), np.random.default_rng(0), threads, contract)
        policy = Deterministic(self.teacher.expert, {})
        save_trained(policy, robot, evaluate(policy, robot)[1], folder, self.teacher.run.hashes()["robot"])
        self.teacher.run.save(folder)


def _with(seen: Frame, z: Array) -> Frame:
    """Observations with a z as their last columns."""
    seen = seen.copy()
    seen[:, -z.shape[1] :] = z
    return seen
