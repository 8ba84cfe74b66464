"""Trials: a policy on robots of given parameters, many at once, and what a run costs the task."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.learn import COURSE_PUSH, CourseResult, Environment, Task, draw_from, play_course, task_of, with_commands
from gapless.policy import Policy
from gapless.robots import RobotModel, base_joint, find_legs, geom_bottoms, home_data
from gapless.twin import Belief, Stated, Twin

SECONDS = 6.0
VELOCITY, DRIVE, REACH = ("vx", "vy", "yaw_rate"), ("v", "yaw_rate"), ("x", "y", "z")
SETTLED = 1.0
"""Errors count from here on, as on the course [s]."""
STAND = 0.1
"""Share of commands that are to stand still."""


@dataclass(frozen=True)
class Trials:
    """A policy, its robot and its task, ready to be tried."""

    policy: Policy
    twin: Twin
    task: Task
    seed: int = 0
    threads: int = 0
    seconds: float = SECONDS

    @property
    def usual_push(self) -> float:
        """Speed of the course's kicks [m/s]; 0 for a robot that cannot fall."""
        legs = find_legs(self.twin)
        return 0.0 if legs is None else COURSE_PUSH.get(len(legs), 0.5)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """What may be commanded: as the policy's contract says, and as the task does where that is silent."""
        stated = self.policy.contract.commands
        return {name: stated.get(name) or usual for name, usual in self.task.commands.items()}

    def commands(self, n: int) -> Array:
        """Commands within the ranges, the same for each number. Shape: (n, columns)."""
        rng = np.random.default_rng([self.seed, 0xC0])
        low, high = np.array(list(self.ranges.values())).reshape(-1, 2).T
        drawn = rng.uniform(low, high, (n, len(low)))
        drawn[rng.random(drawn.shape) < 0.25] = 0.0
        drawn[rng.random(n) < STAND] = 0.0
        return drawn

    def run(
        self,
        values: ArrayLike,
        commands: Array | None = None,
        push: ArrayLike = 0.0,
        watch: Callable[[Environment], None] = lambda environment: None,
    ) -> CourseResult:
        """Try the policy on robots of these parameters over `twin.space`. Shape: (n, parameters).

        Args:
            values: of each robot.
            commands: of each robot (n, columns); as the task draws them unless given.
            push: speed of a kick every 2.5 s, for all or by robot [m/s].
            watch: called after every period.
        """
        values = np.atleast_2d(np.asarray(values, float))
        rng = np.random.default_rng([self.seed, 0x7A])
        moves = tuple(self.task.commands) in (VELOCITY, DRIVE)  # other targets are for the task to draw: not all can be reached
        asked = with_commands(self.task, commands if moves else None)
        environment = Environment(self.twin, asked, len(values), None, rng, self.threads, self.policy.contract)
        return play_course(environment, self.task, self.policy, rng, push, self.seconds, watch, values)


def trials_of(policy: Policy, twin: Twin, task: Task | str | None = None, **more: float | int) -> Trials:
    """A policy ready to be tried on a robot; its task is told from its commands unless given.

    Args:
        policy: with its contract.
        twin: the robot.
        task: a task, or the name of a built-in one.
        more: fields of `Trials`: seed, threads, seconds.
    """
    if more.get("seconds", SECONDS) <= SETTLED:
        raise BadInput(f"a run must last longer than {SETTLED:g} s, from which on errors count, not {more['seconds']:g} s")
    if task is None:
        names = tuple(policy.contract.commands)
        by_names = {VELOCITY: "velocity", DRIVE: "drive", REACH: "reach", (): "stand" if find_legs(twin) else "swing"}
        if names not in by_names:
            raise BadInput(f"the policy's commands ({', '.join(names)}) do not tell its task: name it with --task")
        task = by_names[names]
    return Trials(policy, twin, task_of(task, twin) if isinstance(task, str) else task, **more)  # type: ignore[arg-type]


def drawn(trials: Trials, belief: Belief | None, runs: int) -> CourseResult:
    """A policy on robots drawn from what is known, or from the preset `wide`, kicked as on the course."""
    source = draw_from("wide", trials.twin) if belief is None else belief
    assert source is not None
    values = trials.twin.expand(source.sample(runs, np.random.default_rng([trials.seed, 0xB0])), source.space)
    return trials.run(values, trials.commands(runs), trials.usual_push)


def survived(result: CourseResult) -> Bools:
    """Runs without a fall; those that succeeded, of a robot that is not told to walk. Shape: (runs,)."""
    return ~result.fell if np.isfinite(result.velocity_error).any() else result.success


def losses(result: CourseResult) -> Array:
    """What each run costs the task, 0 to 1: 1 for a fall or a failure; else the share of the command that is not followed.

    Where velocities are commanded that is the error of a run over that of a robot that stands still under the same commands,
    mean of velocity and turn rate. Shape: (runs,).
    """
    if not np.isfinite(result.velocity_error).any():
        return np.asarray(~result.success, float)
    errors = (result.velocity_error, result.yaw_error)
    shares = [e / a for e, a in zip(errors, of_standing_still(result), strict=True) if a > 0]
    # a robot that is told to stand still has no command to miss
    missed = np.clip(np.nan_to_num(np.mean(shares, axis=0), nan=1.0), 0.0, 1.0) if shares else 0.0
    return np.where(result.fell, 1.0, missed).astype(float)


def of_standing_still(result: CourseResult) -> tuple[float, float]:
    """Mean errors of velocity [m/s] and turn rate [rad/s] of a robot that stands still under the same commands."""
    return float(np.hypot(*result.command[:, :2].T).mean()), float(np.abs(result.command[:, 2]).mean())


def spread(rows: Sequence[Array], each: int) -> Array:
    """Each of some vectors of parameters, for so many robots in a row. Shape: (len(rows) * each, parameters)."""
    return np.repeat(np.array(rows), each, axis=0)


def twin_for(policy: Policy, robot: str, belief: str | os.PathLike[str] | None = None) -> Twin:
    """A robot driven as a policy's contract says: its gains, period and default pose, in place of the model's own.

    Args:
        policy: with its contract; gains that it does not know stay the model's.
        robot: a built-in robot, an MJCF or URDF file, or menagerie:NAME.
        belief: a file of what is known about the robot, whose mechanisms the twin then has.
    """
    contract = policy.contract
    joints, model = contract.joints, Stated(control_dt=contract.timing.control_dt).robot(robot)
    own = {j.name: (j.kp, j.kd) for j in model.joint_table}
    known = joints.kp is not None and joints.kd is not None and contract.action.kind == "position"
    stated = dict(zip(joints.names, zip(joints.kp or (), joints.kd or (), strict=True), strict=False)) if known else {}
    if all(np.allclose(own.get(name, (0.0, 0.0)), gains) for name, gains in stated.items()):
        stated = {}
    kp, kd = ({name: gains[k] for name, gains in stated.items()} for k in (0, 1))
    pose = dict(zip(joints.names, joints.default_pos or (), strict=False))
    return Stated(kp, kd).twin(_standing(model, pose), belief=belief)


def _standing(robot: RobotModel, pose: Mapping[str, float]) -> RobotModel:
    """The robot with some joints elsewhere at home, its lowest point as high above the ground as it was."""
    home, command = robot.home.copy(), robot.home_command.copy()
    for d in robot.drives:
        home[d.qpos] = pose.get(d.name, home[d.qpos])
        if d.signal == "q" and d.name in pose:
            command[d.control] = pose[d.name] * robot.model.actuator_gear[d.actuator, 0]
    if np.allclose(home, robot.home, atol=1e-3):
        return robot
    if (base := base_joint(robot.model)) is not None:
        data, own = home_data(robot.model), robot.model.geom_bodyid > 0
        before = geom_bottoms(robot.model, data)[own].min()
        data.qpos[:] = home
        mujoco.mj_kinematics(robot.model, data)
        home[int(robot.model.jnt_qposadr[base]) + 2] += before - geom_bottoms(robot.model, data)[own].min()
    spec = robot.spec.copy()
    key = next((k for k in spec.keys if k.name == "home"), None) or spec.add_key(name="home")
    key.qpos, key.ctrl = home, command
    return replace(robot, spec=spec, model=spec.compile())
