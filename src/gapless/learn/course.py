"""Course: how a policy is judged apart from its reward, on robots that it has never met, with pushes."""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gapless.arrays import Array, Bools
from gapless.learn.course_result import CourseResult
from gapless.learn.environment import Environment, Frame, Step
from gapless.learn.scene import Scene
from gapless.learn.task import Task
from gapless.learn.tasks.velocity import followed, velocity_errors
from gapless.policy import Contract
from gapless.robots import legs_of
from gapless.twin import Belief, Twin

Act = Callable[[Frame], ArrayLike]
"""From observations (n, width) to actions (n, actions).

A `Policy` brings its `contract`, and a `reset` that is told which robots start again: None for all, whose number may change.
"""

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


class Idle:
    """The policy that does nothing: its output is zero, which asks for the default pose (or for the gait that it adds to)."""

    def __init__(self, contract: Contract):
        self.contract = contract

    def __call__(self, observation: Frame) -> Array:
        return np.zeros((len(observation), len(self.contract.action.joints)))


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
    watch: Callable[[Environment], None] = lambda environment: None,
) -> CourseResult:
    """Run the course with a policy; a robot that falls is out, and errs for the rest of the run as one that stands still.

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
        watch: called after every period.
    """
    grid = _grid(twin, task)
    n = draws * (RUNS if grid is None else len(grid))
    asked = with_commands(task, None if grid is None else np.repeat(grid, draws, axis=0))
    environment = Environment(twin, asked, n, belief, rng, threads, getattr(act, "contract", None))
    size = PUSH.get(len(environment.scene.legs), 0.5) if environment.scene.has_legs and pushes else 0.0
    return play(environment, task, act, rng, size, seconds, watch)


def play(
    environment: Environment,
    task: Task,
    act: Act,
    rng: np.random.Generator,
    push: ArrayLike = 0.0,
    seconds: float = SECONDS,
    watch: Callable[[Environment], None] = lambda environment: None,
    values: Array | None = None,
) -> CourseResult:
    """Let a policy play in an environment whose commands are set (`with_commands`), and judge every run.

    Args:
        environment: one world for each run.
        task: what the policy was trained for.
        act: the policy.
        rng: of the kicks.
        push: speed of a kick every 2.5 s, for all or by world (n,); 0 for none [m/s].
        seconds: of each run.
        watch: called after every period.
        values: parameters of each world, over the environment's belief, in place of what it drew. Shape: (n, parameters).
    """
    scene, dt, n = environment.scene, environment.twin.control_dt, environment.n
    observation = environment.reset()["policy"]
    chance = rng.spawn(1)[0]  # kicks are the same whatever a policy does
    if values is not None:
        environment.worlds.write(values)
    reset = getattr(act, "reset", lambda which: None)
    reset(None)
    start = scene.command.copy(), environment.worlds.values.copy(), environment.ground_hardness.copy()
    size = np.broadcast_to(np.asarray(push, float), (n,))
    kicks = {round(PUSH_EVERY * k / dt) for k in range(1, 1 + math.ceil(seconds / PUSH_EVERY))} if size.any() else set()
    periods = []
    for k in range(round(seconds / dt)):
        if k in kicks:
            angle = chance.uniform(0, 2 * np.pi, n)
            environment.worlds.push(size[:, None] * np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=-1))
        step = environment.step(act(observation))
        observation = step.observation["policy"]
        ended = step.failed | step.timeout  # at the edge of the ground, where a robot starts again
        if ended.any():
            reset(ended)
        periods.append(_seen(environment, task, step))
        watch(environment)
    return _result({name: np.array([p[name] for p in periods]) for name in periods[0]}, scene, task.commands, *start)


def with_commands(task: Task, commands: Array | None) -> Any:
    """The task with one command for the whole run (or as it draws them), without end, pushes or reward of its own."""
    return SimpleNamespace(
        episode=dataclasses.replace(task.episode, seconds=np.inf, command_every=np.inf, push=0.0),
        commands=task.commands,
        terms=task.terms,
        command=task.command if commands is None else lambda scene, ids, rng: commands[ids],
        reward=lambda scene: {},
        done=task.done,
    )


def _seen(environment: Environment, task: Task, step: Step) -> dict[str, Array | Bools]:
    """What counts of a period, by robot; those that start again in it show where they start, which is no part of the run."""
    scene, joints = environment.scene, environment.contract.joints
    limits = dict(zip(joints.names, joints.velocity_limit or (), strict=False))
    limit = np.array([limits.get(j) or np.inf for j in environment.twin.joints])
    speed, change = np.abs(scene.dq), (scene.action - scene.last_action) * np.asarray(environment.contract.action.scale)
    seen: dict[str, Array | Bools] = {
        "failed": step.failed,
        "timeout": step.timeout,
        "success": task.success(scene) if hasattr(task, "success") else np.ones(scene.n, bool),
        "torque": (np.abs(scene.torque) / scene.torque_limit).max(axis=1),
        "speed": speed.max(axis=1),
        "of_limit": (speed / limit).max(axis=1) if np.isfinite(limit).any() else np.full(scene.n, np.nan),
        "rough": (change**2).mean(axis=1),
        "power": np.maximum(scene.torque * scene.dq, 0.0).sum(axis=1),
    }
    if hasattr(task, "away"):
        seen["away"] = task.away(scene)
    if scene.has_legs and tuple(task.commands) == tuple(QUADRUPED):
        seen["velocity"], seen["yaw"] = velocity_errors(scene)
        seen["done"] = np.column_stack([scene.velocity[:, :2], scene.yaw_rate])
        seen["distance"] = np.hypot(*scene.velocity[:, :2].T)
    return seen


def _result(
    seen: dict[str, Array],
    scene: Scene,
    commands: Mapping[str, tuple[float, float]],
    asked: Array,
    parameters: Array,
    hardness: Array,
) -> CourseResult:
    """The figures of each run. seen: by period, shape (periods, n, ...); the rest: what the runs started with."""
    fell: Bools = np.logical_or.accumulate(seen["failed"], axis=0)
    alive = ~fell & ~seen["timeout"].astype(bool)  # a robot that fell no longer counts
    time = scene.dt * np.arange(len(alive))[:, None]
    counts, last = alive & (time >= SETTLE), time[::-1] + scene.dt <= HOLD
    errs = counts | fell & (time >= SETTLE)

    def total(name: str) -> Array:
        """Over the periods that count; NaN where there are none."""
        return np.where(counts.any(axis=0), np.where(counts, seen.get(name, np.nan), 0.0).sum(axis=0), np.nan)

    def error(name: str, of_nothing: Array) -> Array:
        """Mean over the run; a robot that fell errs as one that stands still. NaN where nothing counts."""
        every = np.where(fell, of_nothing, seen[name]) if name in seen else np.full(errs.shape, np.nan)
        return np.where(errs.any(axis=0), np.where(errs, every, 0.0).sum(axis=0), np.nan) / np.maximum(errs.sum(axis=0), 1)

    success = ~fell[-1] & ((alive & seen["success"] & last).sum(axis=0) > 0.9 * last.sum())
    asks: Bools = np.zeros(len(asked), dtype=bool)
    if "done" in seen:
        mean = np.where(counts[..., None], seen["done"], 0.0).sum(axis=0) / np.maximum(counts.sum(axis=0), 1)[:, None]
        success &= counts.any(axis=0) & followed(asked, mean, commands)
        asks = np.asarray(np.hypot(asked[:, 0], asked[:, 1]) > 0.1)
    weight = scene.mass * 9.81 * np.where(asks & (total("distance") > 0), total("distance"), np.nan)
    return CourseResult(
        asked,
        tuple(commands),
        fell[-1],
        success,
        error("velocity", np.hypot(*asked[:, :2].T) if "velocity" in seen else hardness),
        error("yaw", np.abs(asked[:, 2]) if "yaw" in seen else hardness),
        total("power") / weight,
        np.clip(np.where(alive, 1 - seen["torque"], 1.0).min(axis=0), 0.0, 1.0),
        np.where(alive, seen["speed"], 0.0).max(axis=0),
        np.where(alive | np.isnan(seen["of_limit"]), 1 - seen["of_limit"], 1.0).min(axis=0),
        np.sqrt(np.where(alive, seen["rough"], 0.0).sum(axis=0) / np.maximum(alive.sum(axis=0), 1)),
        hardness,
        power=total("power") / np.maximum(counts.sum(axis=0), 1),
        away=error("away", seen["away"][0] if "away" in seen else hardness),
        parameters=parameters,
    )


def _grid(twin: Twin, task: Task) -> Array | None:
    """Every command of the grid for legs. Shape: (commands, 3). None for tasks that draw their own."""
    if tuple(task.commands) != tuple(QUADRUPED):
        return None
    grid = BIPED if len(legs_of(twin)) == 2 else QUADRUPED
    return np.array(list(itertools.product(*grid.values())))
