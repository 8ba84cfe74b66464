"""Soft starts and stops: jerk-limited moves of all joints together, by ruckig."""

from typing import Any

import numpy as np

from gapless.arrays import Array
from gapless.deploy.limits import Limits
from gapless.files import refusing

SLOW = 0.6
"""rad/s (m/s) of such a move."""
ACCELERATION, JERK = 2.0, 10.0
"""rad/s2 and rad/s3."""


class Move:
    """A move from one posture to another, known before it begins."""

    def __init__(self, start: Array, end: Array, limits: Limits, period: float):
        with refusing("a soft start needs one more package: pip install 'gapless[deploy]'", ImportError):
            import ruckig
        n = len(start)
        asked: Any = ruckig.InputParameter(n)
        asked.current_position, asked.target_position = start.tolist(), np.clip(end, limits.low, limits.high).tolist()
        asked.current_velocity = asked.target_velocity = asked.current_acceleration = asked.target_acceleration = [0.0] * n
        asked.max_velocity = np.minimum(SLOW, limits.velocity).tolist()
        asked.max_acceleration, asked.max_jerk = [ACCELERATION] * n, [JERK] * n
        self._move: Any = ruckig.Trajectory(n)
        ruckig.Ruckig(n).calculate(asked, self._move)
        self.seconds = float(self._move.duration)

    def at(self, time: float) -> tuple[Array, Array]:
        """Positions and speeds some seconds after the start. Shape of each: (joints,)."""
        position, velocity, _ = self._move.at_time(min(time, self.seconds))
        return np.array(position), np.array(velocity) if time < self.seconds else np.zeros(len(position))
