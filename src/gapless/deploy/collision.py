"""Predicted collisions of a robot with itself: a target whose way there runs links into each other is not followed."""

import mujoco
import numpy as np

from gapless.arrays import Array
from gapless.deploy.limits import Limits
from gapless.robots import RobotModel

DEEP = 0.004
"""m that links may be inside each other: shapes of models are often a little larger than the robot's."""
WAY = (0.5, 1.0)
"""Shares of the way from where the joints are to their targets that are looked at."""


class Collisions:
    """Looks at where targets lead. Links that touch in the home pose, and what stands still, are left out."""

    def __init__(self, robot: RobotModel):
        self._robot, self._model, self._data = robot, robot.model, mujoco.MjData(robot.model)
        self._qpos = np.array([d.qpos for d in robot.drives])
        self._pose = np.zeros(len(self._qpos))
        self.last = robot.home[self._qpos].copy()
        """The last targets that were clear. Shape: (joints,)."""
        self.refused = 0
        self._home: set[tuple[int, int]] = set()
        self._home = self._pairs(robot.home[self._qpos])
        moving = [g for g in range(self._model.ngeom) if self._model.body_weldid[self._model.geom_bodyid[g]] != 0]
        kinds, meets = self._model.geom_contype, self._model.geom_conaffinity
        self.possible = any(kinds[a] & meets[b] for a in moving for b in moving if a != b)
        """Whether the model lets any two of its links touch; else there is nothing to look at."""

    def clear(self, q: Array, target: Array, limits: Limits) -> bool:
        """Whether the way from q to the targets (joints,) is free; the targets are then kept as the last good ones."""
        if self.possible:
            for share in WAY:
                np.subtract(target, q, out=self._pose)
                self._pose *= share
                self._pose += q
                np.clip(self._pose, limits.low, limits.high, out=self._pose)
                if self._pairs(self._pose) - self._home:
                    self.refused += 1
                    return False
        self.last[:] = np.clip(target, limits.low, limits.high)
        return True

    def _pairs(self, pose: Array) -> set[tuple[int, int]]:
        """Moving links that are in each other in a pose of the driven joints."""
        model, data = self._model, self._data
        data.qpos[:] = self._robot.home
        data.qpos[self._qpos] = pose
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        if not data.ncon:
            return set()
        bodies = model.geom_bodyid[data.contact.geom[data.contact.dist < -DEEP]]
        bodies = np.sort(bodies[(model.body_weldid[bodies] != 0).all(axis=1)], axis=1)
        return {(first, second) for first, second in bodies.tolist()}
