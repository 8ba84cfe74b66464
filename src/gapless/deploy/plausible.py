"""Whether a reading can be true: numbers, clocks, jumps, frozen sensors, and what no robot does."""

import math
from enum import Enum

import numba
import numpy as np

from gapless.arrays import Array
from gapless.deploy.limits import Limits

GLITCH = 0.010
"""s for which single impossible readings are only left out and counted."""
STILL = 0.030
"""s after which a robot whose every number stays the same to the last bit is taken for frozen."""
STUCK = 0.120
"""s after which one joint that reports a speed and does not move, or does not follow, is taken for frozen."""
JUMP = 0.12
"""rad (m) that a joint may seem to move beyond what its speed limit allows: noise, and a reading that was lost."""
BEYOND = 0.25
"""rad (m) outside of its range that no joint can be."""
SPIN = 40.0
"""rad/s that no gyro of a robot on legs shows."""


class Fault(Enum):
    """What is wrong with a reading."""

    NONE = 0
    JOINT_NAN = 1
    IMU_NAN = 2
    CLOCK = 3
    JUMP = 4
    FROZEN = 5
    JOINT_FROZEN = 6
    IMPOSSIBLE = 7
    IMU_IMPOSSIBLE = 8
    IMU_FROZEN = 9


@numba.njit(cache=True)
def _judge(
    q: Array, dq: Array, imu: Array, time: float, kept: Array, kept_imu: Array, kept_time: float, bounds: Array, still: Array
) -> int:
    """The number of the fault of one reading, 0 where there is none. `still`: s for which each joint, and the IMU, stayed."""
    n = len(q)
    if not np.isfinite(time):
        return 3
    dt = time - kept_time
    if dt < 0.0:
        return 3
    for j in range(n):
        if not (np.isfinite(q[j]) and np.isfinite(dq[j])):
            return 1
    fault = 0
    for k in range(len(imu)):
        if not np.isfinite(imu[k]):
            fault = 2
    if fault:
        return fault
    every = True
    for j in range(n):
        if abs(q[j] - kept[0, j]) > 1.5 * bounds[2, j] * dt + JUMP:
            return 4
        if abs(dq[j]) > 1.6 * bounds[2, j] or q[j] < bounds[0, j] - BEYOND or q[j] > bounds[1, j] + BEYOND:
            return 7
        same = q[j] == kept[0, j] and dq[j] == kept[1, j]
        still[j] = still[j] + dt if same else 0.0
        every = every and same
    if len(imu):
        norm = math.sqrt(imu[0] ** 2 + imu[1] ** 2 + imu[2] ** 2 + imu[3] ** 2)
        if abs(norm - 1.0) > 0.05 or max(abs(imu[4]), abs(imu[5]), abs(imu[6])) > SPIN:
            return 8
        same = True
        for k in range(7):
            same = same and imu[k] == kept_imu[k]
        still[n] = still[n] + dt if same else 0.0
        every = every and same
    still[n + 1] = still[n + 1] + dt if every else 0.0
    if still[n + 1] > STILL:
        return 5
    if len(imu) and still[n] > STUCK:
        return 9
    for j in range(n):
        if still[j] > STUCK and abs(dq[j]) > 0.3:
            return 6
    return 0


class Plausible:
    """Keeps the last good reading of a robot, and says what is wrong with those that are not.

    A reading with a fault is left out; it is a fault of the robot once no good one has come for `GLITCH` seconds.
    """

    def __init__(self, limits: Limits, floating: bool):
        n = len(limits.joints)
        self.q, self.dq, self.imu = np.zeros(n), np.zeros(n), np.zeros(7 if floating else 0)
        self.time = -math.inf
        """Of the last good reading, on the robot's clock [s]."""
        self.left_out = 0
        """Readings with a fault so far."""
        self._kept, self._still = np.zeros((2, n)), np.zeros(n + 2)
        self._bounds = np.stack([limits.low, limits.high, limits.velocity])
        self._bad_since = math.nan
        self._first, self.last = True, Fault.NONE

    def take(self, q: Array, dq: Array, imu: Array, time: float, now: float) -> Fault:
        """Look at a reading that arrived at `now` [s]; the fault that has lasted too long, or NONE."""
        if self._first:
            if not (np.isfinite(q).all() and np.isfinite(dq).all() and np.isfinite(imu).all() and math.isfinite(time)):
                return Fault.JOINT_NAN
            self._kept[0], self._kept[1], self.imu[:], self.time, self._first = q, dq, imu, time, False
        fault = Fault(_judge(q, dq, imu, time, self._kept, self.imu, self.time, self._bounds, self._still))
        self.last = fault
        if fault in (Fault.NONE, Fault.IMU_NAN, Fault.IMU_IMPOSSIBLE, Fault.IMU_FROZEN):  # joints can be relied on
            self.q[:], self.dq[:], self._kept[0], self._kept[1] = q, dq, q, dq
            self.time = time
            if fault is Fault.NONE:
                self.imu[:] = imu
        if fault is Fault.NONE:
            self._bad_since = math.nan
            return fault
        self.left_out += 1
        if math.isnan(self._bad_since):
            self._bad_since = now
        lasting = fault in (Fault.FROZEN, Fault.JOINT_FROZEN, Fault.IMU_FROZEN) or now - self._bad_since >= GLITCH
        return fault if lasting else Fault.NONE
