"""Course: how a policy is judged apart from its reward, on robots that it has never met, with pushes."""

import dataclasses
import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gapless.arrays import Array, Bools
from gapless.learn.course_result import CourseResult
from gapless.learn.environment import Environment, Frame, Step
from gapless.learn.scene import Scene
from gapless.learn.task import Task
from gapless.policy import Contract
from gapless.robots import legs_of
from gapless.twin import Belief, Twin

Act = Callable[[Frame], ArrayLike]
"""From observations (n, width) to actions (n, actions)."""
Forget = Callable[[Bools | None], None]
"""Tells a policy which robots start again; None for all, whose number may change."""

SECONDS = 10.0
SETTLE = 1.0
"""Errors count from here on, as a robot needs a moment to reach its speed [s]."""
QUADRUPED = {"vx": (-0.5, 0.0, 0.5, 1.0), "vy": (-0.3, 0.0, 0.3), "yaw_rate": (-0.8, 0.0, 0.8)}
BIPED = {"vx": (0.0, 0.3, 0.6), "vy": (0.0,), "yaw_rate": (-0.5, 0.0, 0.5)}
PUSH = {4: 0.5, 2: 0.3}
"""Speed of a kick by number of legs [m/s]."""
PUSH_EVERY = 2.5
"""[s]"""
DRAWS = 6
"""Robots for each command: 36 commands of the quadruped make 216 runs."""
RUNS = 36
"""Commands of tasks without such a grid."""
HOLD = 2.0
"""Success is judged over the last seconds of a run, and must hold for nine tenths of them [s]."""


def run(
    twin: Twin,
    task: Task,
    act: Act,
    belief: Belief | None,
    rng: np.random.Generator,
    draws: int = DRAWS,
    pushes: bool = True,
    seconds: float = SECONDS,
    threads: int = 0,
    contract: Contract | None = None,
    reset: Forget = lambda which: None,
    watch: Callable[[Environment], None] = lambda environment: None,
) -> CourseResult:
    """Run the course with a policy; a robot that falls is out.

    Args:
        twin: the robot, on the ground that it is to walk on (`gapless.learn.ground`).
        task: what the policy was trained for.
        act: the policy.
        belief: what robots are drawn from.
        rng: not that of training, so that the robots differ.
        draws: robots for each command.
        pushes: whether the base is kicked every 2.5 s.
        seconds: of each run.
        threads: 0 for one per core.
        contract: of the policy, where it was not trained for this very task.
        reset: called with the worlds that start anew, None for all, for a policy with a memory.
        watch: called after every period.
    """
    grid = _grid(twin, task)
    n = draws * (RUNS if grid is None else len(grid))
    asked = _with_commands(task, None if grid is None else np.repeat(grid, draws, axis=0))
    environment = Environment(twin, asked, n, belief, rng, threads, contract)
    scene, dt = environment.scene, twin.control_dt
    observation = environment.reset()["policy"]
    reset(None)
    start = scene.command.copy(), environment.worlds.values.copy(), environment.ground_hardness.copy()
    size = PUSH.get(len(scene.legs), 0.5) if scene.has_legs and pushes else 0.0
    kicks = {round(PUSH_EVERY * k / dt) for k in range(1, 1 + math.ceil(seconds / PUSH_EVERY))} if size else set()
    tally = _Tally(environment, task, round(seconds / dt))
    for k in range(tally.steps):
        if k in kicks:
            angle = rng.uniform(0, 2 * np.pi, n)
            environment.worlds.push(size * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1))
        step = environment.step(act(observation))
        observation = step.observation["policy"]
        ended = step.failed | step.timeout  # at the edge of the ground, where a robot starts again
        if ended.any():
            reset(ended)
        tally.add(k, step)
        watch(environment)
    return tally.result(*start)


def _with_commands(task: Task, commands: Array | None) -> Any:
    """The task with one command for the whole run (or as it draws them), without end, pushes or reward of its own."""
    return SimpleNamespace(
        episode=dataclasses.replace(task.episode, seconds=np.inf, command_every=np.inf, push=0.0),
        commands=task.commands,
        terms=task.terms,
        command=task.command if commands is None else lambda scene, ids, rng: commands[ids],
        reward=lambda scene: {},
        done=task.done,
    )


class _Tally:
    """Sums over a course; a robot that fell no longer counts."""

    def __init__(self, environment: Environment, task: Task, steps: int):
        n = environment.n
        self.steps, self._environment, self._task = steps, environment, task
        self._success: Callable[[Scene], Bools] | None = getattr(task, "success", None)
        self._last = np.zeros((n, environment.scene.action.shape[1]))
        self._fell, self._margin, self._speed = np.zeros(n, bool), np.ones(n), np.zeros(n)
        joints = environment.contract.joints
        limits = dict(zip(joints.names, joints.velocity_limit or (), strict=False))
        self._limit = np.array([limits.get(j) or np.nan for j in environment.twin.joints])
        self._speed_margin = np.ones(n) if np.isfinite(self._limit).any() else np.full(n, np.nan)
        self._sums = {k: np.zeros(n) for k in ("lived", "count", "velocity", "yaw", "power", "distance", "rough", "held")}

    def add(self, k: int, step: Step) -> None:
        """Add period k; robots that start again in it show where they start, which is no part of the run."""
        scene, sums = self._environment.scene, self._sums
        self._fell |= step.failed
        alive = ~self._fell & ~step.timeout
        used = (np.abs(scene.torque) / scene.torque_limit).max(axis=1)
        self._margin = np.where(alive, np.clip(1 - used, 0.0, self._margin), self._margin)
        self._speed = np.where(alive, np.maximum(self._speed, np.abs(scene.dq).max(axis=1)), self._speed)
        if np.isfinite(self._limit).any():
            left = 1 - np.nanmax(np.abs(scene.dq) / self._limit, axis=1)
            self._speed_margin = np.where(alive, np.minimum(left, self._speed_margin), self._speed_margin)
        scale = np.asarray(self._environment.contract.action.scale)
        sums["lived"] += alive
        sums["rough"] += alive * (((scene.action - self._last) * scale) ** 2).mean(axis=1)
        self._last = scene.action
        if self._success is not None and (self.steps - k) * scene.dt <= HOLD:
            sums["held"] += alive & self._success(scene)
        if k * scene.dt < SETTLE:
            return
        sums["count"] += alive
        if scene.has_legs and tuple(self._task.commands) == tuple(QUADRUPED):
            sums["velocity"] += alive * np.hypot(*(scene.velocity[:, :2] - scene.command[:, :2]).T)
            sums["yaw"] += alive * np.abs(scene.yaw_rate - scene.command[:, 2])
            sums["power"] += alive * np.maximum(scene.torque * scene.dq, 0.0).sum(axis=1)
            sums["distance"] += alive * np.hypot(*scene.velocity[:, :2].T)

    def result(self, asked: Array, parameters: Array, hardness: Array) -> CourseResult:
        """The figures of each run, from the commands, robots and ground that they started with."""
        scene, sums, columns = self._environment.scene, self._sums, tuple(self._task.commands)
        walks = columns == tuple(QUADRUPED)
        count = np.where((sums["count"] > 0) & walks, sums["count"], np.nan)
        held = sums["held"] * scene.dt / HOLD > 0.9 if self._success is not None else True
        moving = (np.hypot(asked[:, 0], asked[:, 1]) > 0.1) & (sums["distance"] > 0) if walks else np.zeros(len(asked), bool)
        weight = scene.mass * 9.81 * np.where(moving, sums["distance"], np.nan)
        return CourseResult(
            asked,
            columns,
            self._fell,
            ~self._fell & held,
            sums["velocity"] / count,
            sums["yaw"] / count,
            sums["power"] / weight,
            self._margin,
            self._speed,
            self._speed_margin,
            np.sqrt(sums["rough"] / np.maximum(sums["lived"], 1)),
            hardness,
            parameters=parameters,
        )


def _grid(twin: Twin, task: Task) -> Array | None:
    """Every command of the grid for legs. Shape: (commands, 3). None for tasks that draw their own."""
    if tuple(task.commands) != tuple(QUADRUPED):
        return None
    grid = BIPED if len(legs_of(twin.robot)) == 2 else QUADRUPED
    return np.array(list(itertools.product(*grid.values())))
