"""Velocity: a legged robot follows commanded forward, sideways and turning velocities, and stands still at zero."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.learn.scene import Scene
from gapless.learn.task import ODOMETRY, Episode, Ints, fallen, joint_terms
from gapless.policy import Reference, Term
from gapless.robots import Legs, legs_of, solve_foot_heights
from gapless.twin import Twin

QUADRUPED = {"vx": (-0.7, 1.2), "vy": (-0.45, 0.45), "yaw_rate": (-1.0, 1.0)}
"""Slightly wider than the course, so that its corners are not at the edge of the training [m/s, rad/s]."""
BIPED = {"vx": (-0.2, 0.7), "vy": (-0.2, 0.2), "yaw_rate": (-0.6, 0.6)}
WAKE = 0.2
"""Base speed above which a biped steps even when asked to stand; its ankles can stop little more [m/s]."""
FOLLOWED = 0.1, 0.2
"""A command counts as followed within a tenth of the largest command plus a fifth of this one, as the accuracy of instruments
is stated: kicks and drift do not grow with the command, slip does. Standing still follows none of the course but zero."""
ROWS = 32
"""Rows of a reference gait; even, so that it is its own mirror image half a cycle later."""


@dataclass(frozen=True)
class VelocityTask:
    """Follow (vx, vy, yaw rate) with two groups of legs that step in turn, timed by a clock; see `velocity_of`."""

    commands: Mapping[str, tuple[float, float]] = field(default_factory=lambda: dict(QUADRUPED))
    frequency: float = 2.5
    """Of the gait [Hz]."""
    clearance: float = 0.06
    """Height of a foot in the middle of its swing [m]."""
    lead: tuple[float, ...] = (0.0, 0.5, 0.5, 0.0)
    """Phase of each foot in the gait, in cycles."""
    duty: float = 0.5
    """Share of a cycle that a foot is on the ground."""
    history: int = 1
    step: float = 1.0
    """Weight of the reward for stepping with the clock."""
    still: float = 0.1
    """Share of commands that are to stand still."""
    odometry: bool = True
    """Whether the policy sees the base velocity estimated from its legs."""
    episode: Episode = field(default_factory=lambda: Episode(push=0.8))

    def terms(self, twin: Twin) -> tuple[Term, ...]:
        return (
            *joint_terms(twin, self.history),
            Term("command", "command", 3, scale=(2.0, 2.0, 1.0)),
            Term("clock", "clock", 2, frequency=self.frequency),
            *((ODOMETRY,) if self.odometry else ()),
        )

    def command(self, scene: Scene, ids: Ints, rng: np.random.Generator) -> Array:
        low, high = np.array(list(self.commands.values())).T * scene.share
        drawn = rng.uniform(low, high, (len(ids), 3))
        # walking backwards while moving sideways or turning falls most often: draw it more often
        backwards = rng.random(len(ids)) < 0.2
        drawn[backwards, 0] = rng.uniform(low[0], 0.0, int(backwards.sum()))
        drawn[rng.random(drawn.shape) < 0.25] = 0.0
        drawn[rng.random(len(ids)) < self.still] = 0.0
        return drawn

    def swing(self, scene: Scene) -> tuple[Array, Bools]:
        """How high each foot should be (0 in stance to 1 in mid-swing), and which robots step. Shapes: (n, feet), (n,)."""
        moving = scene.gait.steps(scene.command)
        return self.lifted(scene.gait.cycles(self.frequency)) * moving[:, None], moving

    def lifted(self, cycles: Array) -> Array:
        """How high each foot should be, 0 to 1, by cycles of the gait. Shapes: (n,) to (n, feet)."""
        phase = 2 * np.pi * (cycles[:, None] + np.array(self.lead))
        late = np.sin(np.pi * (self.duty - 0.5))
        return np.asarray(np.maximum(-np.sin(phase) - late, 0.0) / (1 - late))

    def metrics(self, scene: Scene) -> dict[str, Array]:
        return dict(zip(("velocity_error", "yaw_error"), velocity_errors(scene), strict=True))

    def reward(self, scene: Scene) -> dict[str, Array]:
        legs = len(scene.legs)
        swing, moving = self.swing(scene)
        error, turn = velocity_errors(scene)
        lifted = np.maximum(scene.foot_height, 0.0)
        return {
            "velocity": following(error, 0.1),
            "yaw": following(turn, 0.15, weight=1.2),
            "gait": self.step * (scene.contact == (swing == 0.0)).sum(axis=1) / legs,
            "swing": 1.5 * self.step * np.exp(-(((self.clearance * swing - lifted) / 0.03) ** 2)).sum(axis=1) / legs,
            "alive": np.full(scene.n, 0.3),
            "vertical": -1.0 * scene.velocity[:, 2] ** 2,
            "tilt": -4.0 * (scene.gravity[:, :2] ** 2).sum(axis=1) - 0.05 * (scene.turn[:, :2] ** 2).sum(axis=1),
            "height": -30.0 * (scene.height - scene.home_height) ** 2,
            "torque": -1.0 * ((scene.torque / scene.torque_limit) ** 2).mean(axis=1),
            "action_rate": -0.01 * ((scene.action - scene.last_action) ** 2).sum(axis=1),
            "power": -0.01 * np.abs(scene.torque * scene.dq).sum(axis=1) / scene.mass,
            "slip": -0.3 * (scene.foot_speed * scene.contact).sum(axis=1) / legs,
            "pose": -np.where(moving, 0.3, 2.0) * ((scene.q - scene.home) ** 2).sum(axis=1),
            "fall": -50.0 * scene.failed,
        }

    def done(self, scene: Scene) -> Bools:
        return fallen(scene)


def velocity_errors(scene: Scene) -> tuple[Array, Array]:
    """Errors of the velocity over the ground [m/s] and of the yaw rate [rad/s], under commands (vx, vy, yaw rate)."""
    return np.hypot(*(scene.velocity[:, :2] - scene.command[:, :2]).T), np.abs(scene.yaw_rate - scene.command[:, 2])


def followed(command: Array, mean: Array, commands: Mapping[str, tuple[float, float]]) -> Bools:
    """Whether the mean velocity of a run, in which gait and kicks average out, is what was commanded; see `FOLLOWED`.

    Args:
        command: vx, vy [m/s], yaw rate [rad/s], shape (n, 3).
        mean: what they were on average, shape (n, 3).
        commands: the task's ranges.
    """
    vx, vy, turn = (max(abs(low), abs(high)) for low, high in commands.values())
    of_largest, of_command = FOLLOWED
    move = np.hypot(*(mean - command)[:, :2].T) <= of_largest * max(vx, vy) + of_command * np.hypot(*command[:, :2].T)
    return np.asarray(move & (np.abs(mean - command)[:, 2] <= of_largest * turn + of_command * np.abs(command[:, 2])))


def following(error: Array, width: float, weight: float = 2.0) -> Array:
    """Reward for following a command: a bell around no error, and a slope that leads there from afar.

    width: of the bell, squared, in the unit of the error, squared.
    """
    return np.asarray(weight * np.exp(-(error**2) / width) - 0.5 * weight * np.abs(error))


def velocity_of(twin: Twin, history: int = 1, residual: bool = False) -> VelocityTask:
    """The task for a robot, with a gait that follows from where its feet are; bad input for a robot without feet.

    With `residual` the policy adds to an open-loop gait in place. A biped always does: left to discover stepping, it first
    learns that standing still is safe.
    """
    legs = legs_of(twin)
    lead = leads(legs)
    residual = residual or len(legs) == 2
    if len(legs) == 2:
        task = VelocityTask(dict(BIPED), 1.5, 0.06, lead, 0.6, history, step=3.0, still=0.25, episode=Episode(push=0.5))
    else:
        task = VelocityTask(lead=lead, history=history, frequency=2.75 if residual else 2.5)
    return dataclasses.replace(task, episode=_with_gait(task, twin, legs)) if residual else task


def _with_gait(task: VelocityTask, twin: Twin, legs: Legs) -> Episode:
    """The task's episodes, with a gait that lifts each foot as the reward asks for."""
    if any(d.signal != "q" for d in twin.drives):
        raise BadInput(f"{twin.name}: a residual is added to the joint positions of a gait: state gains with --kp and --kd")
    joints = solve_foot_heights(twin, legs, task.clearance * task.lifted(np.arange(ROWS) / ROWS))
    table = tuple(map(tuple, (np.round(joints, 6) + 0.0).tolist()))  # microradians are enough, and easier to read
    return dataclasses.replace(task.episode, reference=Reference(task.frequency, table, wake=WAKE if len(legs) == 2 else None))


def leads(legs: Legs) -> tuple[float, ...]:
    """Feet in two groups half a cycle apart: each side in turn from the front, and the sides against each other."""
    x, left = legs.home[:, 0], legs.home[:, 1] > 0
    ahead = ((x > x[:, None] + 1e-6) & (left == left[:, None])).sum(axis=1)
    return tuple(((ahead + ~left) % 2 * 0.5).tolist())
