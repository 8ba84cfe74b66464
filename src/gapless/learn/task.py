"""What a task is: commands, what the policy sees, reward terms by name, and when an episode ends.

The smallest one, whole:

    class Upright:
        episode = Episode(seconds=5.0, push=0.3)
        commands = {}

        def terms(self, twin):
            return joint_terms(twin)

        def command(self, scene, ids, rng):
            return np.zeros((len(ids), 0))

        def reward(self, scene):
            return {"upright": -scene.gravity[:, 2]}

        def done(self, scene):
            return scene.gravity[:, 2] > -0.5
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gapless.arrays import Array, Bools, Ints
from gapless.learn.scene import Scene
from gapless.policy import Reference, Term
from gapless.rotations import tipped
from gapless.twin import Twin

FALL_HEIGHT = 0.5
"""Of the height at home."""
ODOMETRY = Term("velocity", "velocity", 3, scale=2.0, provenance="estimated", unit="m/s", frame="base")
"""The velocity of the base that its legs suggest."""


@dataclass(frozen=True)
class Episode:
    """Length, commands, pushes and start of an episode."""

    seconds: float = 10.0
    command_every: float = 4.0
    """Time between new commands [s]."""
    action_scale: float = 0.25
    """Change of a position target for an action of 1 [rad]; velocity and torque drives scale by their limit."""
    reference: Reference | None = None
    """A gait that actions are added to."""
    push: float = 0.0
    """Largest kick of the floating base [m/s]."""
    push_every: float = 2.5
    """Mean time between kicks [s]."""
    start_q: float = 0.1
    """Largest distance of start positions from home, drawn uniformly [rad]."""
    start_dq: float = 0.3
    """Largest start velocity of joints and base [rad/s, m/s]."""


class Task(Protocol):
    """A task; every array has a leading axis of worlds.

    It may also offer:

    - `success(scene)`, bool (n,): whether the task is being done well; the course asks.
    - `away(scene)`, (n,): how far the robot is from what is asked, for tasks without velocities; the course asks.
    - `privileged(scene)`, (n, columns): what only the critic sees, besides the truth about terms and the world.
    - `metrics(scene)`, (n,) by name: what to watch while it is learned, such as tracking errors in their own units.
    """

    @property
    def episode(self) -> Episode: ...

    @property
    def commands(self) -> Mapping[str, tuple[float, float]]:
        """Names of the command's columns, and the range of each."""
        ...

    def terms(self, twin: Twin) -> Sequence[Term]:
        """What the policy sees; a privileged term is an error."""
        ...

    def command(self, scene: Scene, ids: Ints, rng: np.random.Generator) -> Array:
        """New commands for some worlds. Shape: (len(ids), columns)."""
        ...

    def reward(self, scene: Scene) -> Mapping[str, Array]:
        """Reward by term, in reward per second. Shape of each: (n,)."""
        ...

    def done(self, scene: Scene) -> Bools:
        """Worlds in which the task has failed. Shape: (n,)."""
        ...


def fallen(scene: Scene) -> Bools:
    """Robots that lean by more than 60 degrees or whose base is below half its height at home."""
    return np.asarray(tipped(scene.up) | (scene.height < FALL_HEIGHT * scene.home_height))


def joint_terms(twin: Twin, history: int = 1) -> tuple[Term, ...]:
    """Joint positions, joint velocities, the last action, and the IMU where the base floats."""
    joints = len(twin.joints)
    imu = (
        Term("gyro", "gyro", 3, scale=0.25, history=history, unit="rad/s", frame="base"),
        Term("gravity", "gravity", 3, history=history, frame="base"),
    )
    return (
        *(imu if twin.floating else ()),
        Term("q", "q", joints, history=history, unit="rad"),
        Term("dq", "dq", joints, scale=0.05, history=history, unit="rad/s"),
        Term("last_action", "last_action", joints, history=history),
    )
