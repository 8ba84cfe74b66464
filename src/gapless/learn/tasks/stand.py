"""Stand: a legged robot keeps its pose and place while it is pushed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gapless.arrays import Array, Bools
from gapless.learn.scene import Scene
from gapless.learn.task import ODOMETRY, Episode, Ints, fallen, joint_terms
from gapless.policy import Term
from gapless.robots import legs_of
from gapless.twin import Twin


@dataclass(frozen=True)
class StandTask:
    """Hold the home pose; there is no command."""

    history: int = 1
    commands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    episode: Episode = field(default_factory=lambda: Episode(push=1.0))

    def terms(self, twin: Twin) -> tuple[Term, ...]:
        return (*joint_terms(twin, self.history), ODOMETRY)

    def command(self, scene: Scene, ids: Ints, rng: np.random.Generator) -> Array:
        return np.zeros((len(ids), 0))

    def reward(self, scene: Scene) -> dict[str, Array]:
        return {
            "pose": 2.0 * np.exp(-4.0 * ((scene.q - scene.home) ** 2).mean(axis=1)),
            "upright": -4.0 * (scene.gravity[:, :2] ** 2).sum(axis=1),
            "still": -1.0 * (scene.velocity**2).sum(axis=1) - 0.1 * (scene.turn**2).sum(axis=1),
            "height": -30.0 * (scene.height - scene.home_height) ** 2,
            "alive": np.full(scene.n, 1.0),
            "torque": -1.0 * ((scene.torque / scene.torque_limit) ** 2).mean(axis=1),
            "action_rate": -0.02 * ((scene.action - scene.last_action) ** 2).sum(axis=1),
            "fall": -50.0 * scene.failed,
        }

    def done(self, scene: Scene) -> Bools:
        return fallen(scene)

    def success(self, scene: Scene) -> Bools:
        """Close to the home pose, upright within 10 degrees."""
        return (np.abs(scene.q - scene.home).mean(axis=1) < 0.2) & (scene.up[:, 2] > 0.985)


def stand_of(twin: Twin, history: int = 1) -> StandTask:
    """The task for a robot; bad input for one without feet."""
    legs_of(twin)
    return StandTask(history)
