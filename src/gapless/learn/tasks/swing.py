"""Swing: a pendulum, single or double, swings up and holds still there."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import mujoco
import numpy as np

from gapless.arrays import Array, Bools
from gapless.errors import BadInput
from gapless.learn.scene import Scene
from gapless.learn.task import Episode, Ints, joint_terms
from gapless.policy import Term
from gapless.twin import Twin

OVERSPEED = 40.0
"""A joint that spins faster ends the episode: unbounded targets could accelerate it without end [rad/s]."""


@dataclass(frozen=True)
class SwingTask:
    """Swing the last link up and hold it there; see `swing_of`."""

    tip: str
    low: float
    high: float
    """Heights of the last link's centre of mass, lowest and highest [m]."""
    history: int = 1
    commands: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    episode: Episode = field(default_factory=lambda: Episode(seconds=6.0, action_scale=float(np.pi), start_q=0.5, start_dq=1.0))

    def terms(self, twin: Twin) -> tuple[Term, ...]:
        return joint_terms(twin, self.history)

    def command(self, scene: Scene, ids: Ints, rng: np.random.Generator) -> Array:
        return np.zeros((len(ids), 0))

    def height(self, scene: Scene) -> Array:
        """From 0, hanging, to 1, upright."""
        return np.asarray((scene.point(self.tip)[:, 2] - self.low) / (self.high - self.low))

    def away(self, scene: Scene) -> Array:
        """From 1, hanging, to 0, upright."""
        return 1 - self.height(scene)

    def metrics(self, scene: Scene) -> dict[str, Array]:
        return {"height": self.height(scene)}

    def reward(self, scene: Scene) -> dict[str, Array]:
        height = self.height(scene)
        return {
            "height": 2.0 * height,
            "upright": 3.0 * np.exp(-(((1 - height) / 0.05) ** 2)),
            "speed": -0.002 * (scene.dq**2).sum(axis=1) * (1 + 10 * (height > 0.9)),
            "action_rate": -0.1 * ((scene.action - scene.last_action) ** 2).sum(axis=1),
            "overspeed": -100.0 * scene.failed,
        }

    def done(self, scene: Scene) -> Bools:
        return np.asarray(np.abs(scene.dq).max(axis=1) > OVERSPEED)

    def success(self, scene: Scene) -> Bools:
        """At 95 % of the height, and slower than 1 rad/s."""
        return (self.height(scene) > 0.95) & (np.abs(scene.dq).max(axis=1) < 1.0)


def swing_of(twin: Twin, history: int = 1) -> SwingTask:
    """The task for a pendulum that hangs in its home pose; bad input for any other robot."""
    model = twin.model
    if twin.floating or not 0 < len(twin.joints) <= 2:
        raise BadInput(f"{twin.name} is not a pendulum: swing needs a fixed base and one or two driven joints")
    body = model.body(model.jnt_bodyid[twin.drives[-1].joint])
    data = mujoco.MjData(model)
    data.qpos[:] = twin.home
    heights = []
    rng = np.random.default_rng(0)
    for _ in range(2000):
        mujoco.mj_kinematics(model, data)
        heights.append(float(data.xipos[body.id, 2]))
        data.qpos[[d.qpos for d in twin.drives]] = rng.uniform(-np.pi, np.pi, len(twin.drives))
    if max(heights) - heights[0] < 0.8 * (max(heights) - min(heights)):
        raise BadInput(f"{twin.name} does not hang in its home pose, so there is nothing to swing up")
    return SwingTask(f"com:{body.name}", min(heights), max(heights), history)
