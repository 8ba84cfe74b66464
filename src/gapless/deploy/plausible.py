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
CRAWLS, FOLLOWS = 0.3, 0.1
"""rad/s that a joint reports, and rad by which its target moved, while it stays where it is to the last bit."""
AHEAD, FASTER = 0.5, 0.1
"""s by which the robot's clock may run ahead of ours, besides the share by which it may be faster."""


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


OF_THE_IMU = (Fault.IMU_NAN, Fault.IMU_IMPOSSIBLE, Fault.IMU_FROZEN)
"""With these the joints can still be relied on."""


@numba.njit(cache=True)
def _judge(
    q: Array,
    dq: Array,
    imu: Array,
    dt: float,
    kept: Array,
    kept_imu: Array,
    bounds: Array,
    told: Array,
    answered: Array,
    still: Array,
) -> int:
    """The number of the fault of one reading, 0 where there is none: of the joints first, as more depends on them.

    Args:
        q, dq, imu: the reading.
        dt: since the one that was kept [s].
        kept, kept_imu: that one.
        bounds: low, high and velocity limit of each joint, shape (3, joints).
        told: targets of the joints now; `answered`: when each stood still for the first time. Shape: (joints,).
        still: s for which each joint, the IMU and all of them stayed the same to the last bit, shape (joints + 2,).
    """
    n = len(q)
    for j in range(n):
        if not (np.isfinite(q[j]) and np.isfinite(dq[j])):
            return 1
        if abs(q[j] - kept[0, j]) > 1.5 * bounds[2, j] * dt + JUMP:
            return 4
        if abs(dq[j]) > 1.6 * bounds[2, j] or q[j] < bounds[0, j] - BEYOND or q[j] > bounds[1, j] + BEYOND:
            return 7
    every = True
    for j in range(n):
        same = q[j] == kept[0, j] and dq[j] == kept[1, j]
        still[j] = still[j] + dt if same else 0.0
        if not same or np.isnan(answered[j]):
            answered[j] = told[j]
        every = every and same
    same = True
    for k in range(len(imu)):
        same = same and imu[k] == kept_imu[k]
    still[n] = still[n] + dt if same else 0.0
    still[n + 1] = still[n + 1] + dt if every and same else 0.0
    if still[n + 1] > STILL:
        return 5
    for j in range(n):
        if still[j] > STUCK and (abs(dq[j]) > CRAWLS or abs(told[j] - answered[j]) > FOLLOWS):
            return 6
    if len(imu):
        for k in range(len(imu)):
            if not np.isfinite(imu[k]):
                return 2
        norm = math.sqrt(imu[0] ** 2 + imu[1] ** 2 + imu[2] ** 2 + imu[3] ** 2)
        if abs(norm - 1.0) > 0.05 or max(abs(imu[4]), abs(imu[5]), abs(imu[6])) > SPIN:
            return 8
        if still[n] > STUCK:
            return 9
    return 0


class Plausible:
    """Keeps the last good reading of a robot, and says what is wrong with those that are not.

    A reading with a fault is left out; it is a fault of the robot once such readings, less the good ones between them, have
    lasted for `GLITCH` seconds.
    """

    def __init__(self, limits: Limits, floating: bool):
        n = len(limits.joints)
        self.q, self.dq, self.imu = np.zeros(n), np.zeros(n), np.zeros(7 if floating else 0)
        self.time = -math.inf
        """Of the last good reading, on the robot's clock [s]."""
        self.left_out = 0
        """Readings with a fault so far."""
        self._kept, self._still, self._answered = np.zeros((2, n)), np.zeros(n + 2), np.full(n, np.nan)
        self._bounds = np.stack([limits.low, limits.high, limits.velocity])
        self._bad, self._now, self._lead = 0.0, math.nan, math.inf
        self._first, self.last = True, Fault.NONE

    def take(self, q: Array, dq: Array, imu: Array, time: float, now: float, told: Array | None = None) -> Fault:
        """Look at a reading that arrived at `now` [s]; the fault that has lasted too long, or NONE.

        Args:
            q, dq, imu, time: the reading.
            now: on our clock [s].
            told: targets of the joints, where they are known. Shape: (joints,).
        """
        if self._first:
            if not (np.isfinite(q).all() and np.isfinite(dq).all() and np.isfinite(imu).all() and math.isfinite(time)):
                return Fault.JOINT_NAN
            self._kept[0], self._kept[1], self.imu[:], self.time, self._now, self._first = q, dq, imu, time, now, False
        elapsed, self._now = now - self._now, now
        lead, dt = time - now, time - self.time
        if not (dt >= 0.0 and lead <= self._lead + AHEAD):
            fault = Fault.CLOCK
        else:
            self._lead = min(self._lead + FASTER * elapsed, lead)
            fault = Fault(
                _judge(
                    q, dq, imu, dt, self._kept, self.imu, self._bounds, self._answered if told is None else told,
                    self._answered, self._still,
                )
            )  # fmt: skip
        before, self.last = self.last, fault
        if fault is Fault.NONE or fault in OF_THE_IMU:
            self.q[:], self.dq[:], self._kept[0], self._kept[1] = q, dq, q, dq
            self.time = time
        if fault is Fault.NONE:
            self.imu[:] = imu
            self._bad = max(0.0, self._bad - elapsed)
            return fault
        self.left_out += 1
        self._bad += elapsed if before is not Fault.NONE else 0.0
        lasting = fault in (Fault.FROZEN, Fault.JOINT_FROZEN, Fault.IMU_FROZEN) or self._bad >= GLITCH
        return fault if lasting else Fault.NONE
